"""Decoding: with and without the cache, greedy and sampled, with the candidates at every step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
import torch

from tests.transformer.tiny import SOURCE, random_model
from transformer import Beam, Checkpoint, Greedy, InputError, Sample, Tokenizer, decode
from transformer.config import NORMS, POSITIONS
from transformer.fast.shortcut import fast_path
from transformer.probes import Edit
from transformer.runs.decoding_state import DecodingState, greedy_batch, writable
from transformer.text.tokenizer import END_ID, PAD_ID, START_ID

SENTENCE = "The cat sat on the mat."
Tiny = Callable[[str], Checkpoint]


@pytest.fixture(scope="module", params=["encoder-decoder", "decoder-only"])
def writer(request: pytest.FixtureRequest, tiny_tokenizer: Tokenizer) -> Checkpoint:
    return checkpoint_of(tiny_tokenizer, request.param, tie_embeddings=False)


def checkpoint_of(tokenizer: Tokenizer, kind: str = "encoder-decoder", **values: object) -> Checkpoint:
    model = random_model(kind, vocabulary_size=tokenizer.vocabulary_size, **{"max_length": 64, **values})
    return Checkpoint(path=Path("random"), model=model, tokenizer=tokenizer, card="")


@pytest.mark.parametrize("path", ["readable", "fast"])
@pytest.mark.parametrize(("positions", "norm"), list(product(POSITIONS, NORMS)))
@pytest.mark.parametrize("kind", ["encoder-decoder", "decoder-only"])
def test_cached_steps_give_the_logits_of_one_pass(kind: str, positions: str, norm: str, path: str) -> None:
    """Token by token and in a block, for two texts at once."""
    model = random_model(kind, positions=positions, norm=norm, tie_embeddings=False)
    source = torch.cat((SOURCE, torch.tensor([[8, 4, 2, 0, 0, 0]]))) if kind == "encoder-decoder" else None
    ids = torch.tensor([[1, 7, 19, 11, 5, 6, 9], [1, 12, 12, 3, 20, 4, 8]])
    with torch.inference_mode():
        whole = DecodingState(model, source, cached=False).feed_all(ids)
        state = DecodingState(model, source)
        if path == "fast":
            with fast_path():
                steps = [state.feed_all(ids[:, :3])] + [state.feed(ids[:, t : t + 1])[:, None] for t in range(3, 7)]
        else:
            steps = [state.feed_all(ids[:, :3])] + [state.feed(ids[:, t : t + 1])[:, None] for t in range(3, 7)]
    torch.testing.assert_close(torch.cat(steps, dim=1), whole, rtol=0, atol=1e-5)
    assert torch.equal(state.ids, ids)
    assert state.cache.length == 7


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("kind", ["encoder-decoder", "decoder-only"])
@pytest.mark.parametrize("strategy", [Greedy(20), Sample(seed=5, max_new_tokens=20), Beam(3, max_new_tokens=12)])
def test_decoding_with_the_cache_equals_decoding_without_it(
    kind: str, positions: str, strategy: Greedy | Sample | Beam, tiny_tokenizer: Tokenizer
) -> None:
    checkpoint = checkpoint_of(tiny_tokenizer, kind, positions=positions, tie_embeddings=False)
    forced = "Le chien dort"  # a text of one token would prove little
    fast, slow = (decode(checkpoint, SENTENCE, strategy, forced=forced, cached=cached) for cached in (True, False))
    assert fast.tokens.ids == slow.tokens.ids
    assert len(fast.tokens) > len(tiny_tokenizer.encode(forced))
    assert [h.ids for h in fast.hypotheses] == [h.ids for h in slow.hypotheses]
    for one, other in zip(fast.steps, slow.steps, strict=True):
        np.testing.assert_allclose(one.logits, other.logits, rtol=0, atol=1e-5)


def test_select_keeps_and_doubles_rows_of_the_cache() -> None:
    model = random_model(tie_embeddings=False)
    source = SOURCE.expand(3, -1)
    ids = torch.tensor([[1, 7], [1, 8], [1, 9]])
    rows = torch.tensor([2, 0, 2, 1])
    following = torch.tensor([[4], [5], [6], [7]])
    with torch.inference_mode():
        state = DecodingState(model, source)
        state.feed(ids)
        state.select(rows)
        logits = state.feed(following)
        whole = torch.cat((ids[rows], following), dim=1)
        expected = DecodingState(model, SOURCE.expand(4, -1), cached=False).feed(whole)
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-5)


# ---- what a decoding says -------------------------------------------------------------------------------------------


def test_greedy_takes_the_most_probable_token_at_every_step(writer: Checkpoint) -> None:
    decoding = decode(writer, SENTENCE, Greedy(15))
    assert 1 <= len(decoding.steps) <= 15
    assert [step.index for step in decoding.steps] == list(range(len(decoding.steps)))
    assert tuple(step.chosen.id for step in decoding.steps) == decoding.tokens.ids
    for step in decoding.steps:
        assert step.chosen == step.candidates[0]
        assert step.chosen.id == int(step.logits.argmax())
        probabilities = [candidate.probability for candidate in step.candidates]
        assert probabilities == sorted(probabilities, reverse=True)
        softmax = np.exp(step.logits - step.logits.max())
        softmax /= softmax.sum()
        for candidate in step.candidates:
            assert candidate.probability == pytest.approx(softmax[candidate.id], rel=1e-4)
            assert candidate.chance == candidate.probability
            assert candidate.display == writer.tokenizer.display(candidate.id)
        assert not {PAD_ID, START_ID} & {candidate.id for candidate in step.candidates}
    assert decoding.finished == (decoding.tokens.ids[-1] == END_ID)
    expected = sum(np.log(step.chosen.probability) for step in decoding.steps)
    assert decoding.log_probability == pytest.approx(expected, rel=1e-4)


def test_the_text_is_the_translation_or_the_whole_continued_text(writer: Checkpoint) -> None:
    decoding = decode(writer, SENTENCE, Greedy(15))
    if writer.config.has_encoder:
        assert decoding.text == writer.tokenizer.decode(decoding.tokens.ids)
        assert decoding.source.text == SENTENCE
    else:
        assert decoding.text.startswith(SENTENCE)
        assert decoding.source is None


def test_a_text_stops_at_the_end_token(tiny_tokenizer: Tokenizer) -> None:
    """A model whose projection favours </s> generates nothing else."""
    with torch.random.fork_rng():
        model = random_model.__wrapped__(vocabulary_size=tiny_tokenizer.vocabulary_size, tie_embeddings=False)
    with torch.no_grad():
        model.decoder.final_norm.bias.fill_(1.0)
        model.decoder.vocabulary_projection.weight[END_ID] = 3.0
    checkpoint = Checkpoint(path=Path("random"), model=model, tokenizer=tiny_tokenizer, card="")
    for strategy in (Greedy(), Sample(top_k=1), Beam(2)):
        decoding = decode(checkpoint, SENTENCE, strategy)
        assert decoding.tokens.ids == (END_ID,)
        assert decoding.finished
        assert decoding.text == ""
    assert greedy_batch(model, SOURCE, 10) == [[]]


def test_the_log_probability_stays_finite_where_a_probability_is_too_small_for_a_float(
    tiny_tokenizer: Tokenizer,
) -> None:
    with torch.random.fork_rng():
        model = random_model.__wrapped__(vocabulary_size=tiny_tokenizer.vocabulary_size, tie_embeddings=False)
    with torch.no_grad():
        model.decoder.vocabulary_projection.weight.mul_(300.0)
    checkpoint = Checkpoint(path=Path("random"), model=model, tokenizer=tiny_tokenizer, card="")
    decoding = decode(checkpoint, SENTENCE, Greedy(8), forced="il dort")
    assert min(step.chosen.probability for step in decoding.steps) == 0.0
    assert -np.inf < decoding.log_probability < -100


def test_a_forced_beginning_is_kept(writer: Checkpoint) -> None:
    forced = writer.tokenizer.encode("Le chien dort")
    for strategy in (Greedy(3), Greedy(), Sample(seed=1), Beam(2)):
        decoding = decode(writer, SENTENCE, strategy, forced="Le chien dort")
        assert list(decoding.tokens.ids[: len(forced)]) == forced, "the limit never cuts what is forced"
    assert len(decode(writer, SENTENCE, Greedy(), forced="Le chien dort").tokens) > len(forced)


def test_forced_steps_still_show_what_the_model_wanted(writer: Checkpoint) -> None:
    decoding = decode(writer, SENTENCE, Greedy(), forced="Le chien")
    first = decoding.steps[0]
    assert first.chosen.id == writer.tokenizer.encode("Le chien")[0]
    assert first.candidates[0].id == decode(writer, SENTENCE, Greedy(1)).tokens.ids[0]


def test_recorded_steps_hold_the_activations_of_each_step(writer: Checkpoint) -> None:
    decoding = decode(writer, SENTENCE, Greedy(4), record_steps=True)
    plain = decode(writer, SENTENCE, Greedy(4))
    assert plain.tokens.ids == decoding.tokens.ids
    assert all(not step.activations for step in plain.steps)
    name = "decoder.layers.1.self_attention.weights"
    n_prompt = 1 if writer.config.has_encoder else 1 + len(writer.tokenizer.encode(SENTENCE))
    shapes = [step.activations[name].shape for step in decoding.steps]
    assert shapes == [(2, n_prompt if t == 0 else 1, n_prompt + t) for t in range(4)]
    for step in decoding.steps:
        logits = step.activations["decoder.logits"].values[-1]
        np.testing.assert_array_equal(logits[END_ID:], step.logits[END_ID:])
        assert not step.activations[name].values.flags.writeable


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("kind", ["encoder-decoder", "decoder-only"])
def test_slices_of_one_pass_are_what_each_step_computes(kind: str, positions: str, tiny_tokenizer: Tokenizer) -> None:
    """A forward hook that only observes makes ``decode`` record step by step, on the readable path."""
    checkpoint = checkpoint_of(tiny_tokenizer, kind, positions=positions, tie_embeddings=False)
    sliced = decode(checkpoint, SENTENCE, Greedy(5), record_steps=True, source_pads=2)
    hook = checkpoint.model.probes["decoder.logits"].register_forward_hook(lambda *_: None)
    try:
        stepwise = decode(checkpoint, SENTENCE, Greedy(5), record_steps=True, source_pads=2)
    finally:
        hook.remove()
    assert sliced.tokens.ids == stepwise.tokens.ids
    for one, other in zip(sliced.steps, stepwise.steps, strict=True):
        np.testing.assert_allclose(one.logits, other.logits, rtol=0, atol=1e-5)
        assert list(one.activations) == list(other.activations)
        assert len(one.activations) == len(other.activations)
        for name, activation in other.activations.items():
            assert one.activations[name].axes == activation.axes
            np.testing.assert_allclose(one.activations[name].values, activation.values, rtol=0, atol=1e-5, err_msg=name)
    with pytest.raises(KeyError):
        sliced.steps[1].activations["encoder.embedding.token" if kind == "encoder-decoder" else "decoder.nothing"]


def test_a_forward_hook_changes_what_is_written_as_an_edit_does(writer: Checkpoint) -> None:
    name = "decoder.layers.0.self_attention.weights"
    edits = [Edit(name, torch.zeros_like)]
    hook = writer.model.probes[name].register_forward_hook(lambda probe, inputs, weights: torch.zeros_like(weights))
    try:
        for strategy in (Greedy(6), Beam(2, max_new_tokens=6)):
            hooked, edited = decode(writer, SENTENCE, strategy), decode(writer, SENTENCE, strategy, edits=edits)
            assert hooked.tokens.ids == edited.tokens.ids
            np.testing.assert_allclose(hooked.steps[0].logits, edited.steps[0].logits, rtol=0, atol=1e-5)
    finally:
        hook.remove()
    assert not np.allclose(decode(writer, SENTENCE, Greedy(6)).steps[0].logits, hooked.steps[0].logits, atol=1e-3)


def test_a_projection_that_is_replaced_is_the_one_that_writes(tiny_tokenizer: Tokenizer) -> None:
    """W_Q, W_K and W_V are one product unless one of them was replaced."""

    class Doubled(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return 2 * super().forward(x)

    with torch.random.fork_rng():
        model = random_model.__wrapped__("decoder-only", vocabulary_size=tiny_tokenizer.vocabulary_size)
    attention = model.decoder.layers[0].self_attention
    plain, doubled = attention.value_projection, Doubled(16, 16)
    doubled.load_state_dict(plain.state_dict())
    attention.value_projection = doubled
    with torch.inference_mode(), fast_path():
        ids = torch.tensor([[1, 7, 19]])
        state = DecodingState(model, None)
        state.feed(ids[:, :2])
        step = state.feed(ids[:, 2:])
        whole = DecodingState(model, None, cached=False).feed(ids)
        attention.value_projection = plain
        other = DecodingState(model, None, cached=False).feed(ids)
    torch.testing.assert_close(step, whole, rtol=0, atol=1e-5)
    assert not torch.allclose(step, other, atol=1e-3)


def test_many_sentences_at_once_give_what_each_gives_alone(tiny_tokenizer: Tokenizer) -> None:
    checkpoint = checkpoint_of(tiny_tokenizer, tie_embeddings=False)
    sentences = ["The cat sat on the mat.", "It is raining.", "I love you more than you think, my brother."]
    alone = [[id for id in decode(checkpoint, s, Greedy(12)).tokens.ids if id != END_ID] for s in sentences]
    sources = [[*ids, END_ID] for ids in tiny_tokenizer.encode_many(sentences)]
    longest = max(map(len, sources))
    batch = torch.tensor([ids + [PAD_ID] * (longest - len(ids)) for ids in sources])
    assert greedy_batch(checkpoint.model, batch, 12) == alone


def test_many_sentences_never_run_past_the_models_maximum() -> None:
    model = random_model(max_length=12)
    (ids,) = greedy_batch(model, SOURCE, 1000)
    assert len(ids) <= 12


def test_pads_and_the_start_are_never_written() -> None:
    logits = torch.zeros(2, 3, 6)
    allowed = torch.isfinite(writable(logits))
    assert allowed[..., [PAD_ID, START_ID]].any().item() is False
    assert allowed[..., END_ID:].all()
    assert torch.equal(logits, torch.zeros(2, 3, 6)), "the logits themselves stay"


# ---- limits and errors ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("positions", POSITIONS)
def test_writing_stops_at_the_models_maximum(positions: str, tiny_tokenizer: Tokenizer) -> None:
    for kind in ("encoder-decoder", "decoder-only"):
        checkpoint = checkpoint_of(tiny_tokenizer, kind, positions=positions, max_length=24)
        for strategy in (Greedy(1000), Sample(seed=1, max_new_tokens=1000), Beam(2, max_new_tokens=1000)):
            decoding = decode(checkpoint, SENTENCE, strategy)
            assert len(decoding.tokens) <= 24


def test_a_text_that_leaves_no_room_to_write_is_refused(tiny_tokenizer: Tokenizer) -> None:
    n_tokens = len(tiny_tokenizer.encode(SENTENCE)) + 1
    checkpoint = checkpoint_of(tiny_tokenizer, "decoder-only", max_length=n_tokens)
    with pytest.raises(InputError, match=f"{n_tokens} tokens, and this model sees at most {n_tokens}"):
        decode(checkpoint, SENTENCE)
    checkpoint = checkpoint_of(tiny_tokenizer, "decoder-only", max_length=n_tokens + 3)
    assert 1 <= len(decode(checkpoint, SENTENCE).tokens) <= 3
    with pytest.raises(InputError, match="no room to write"):
        decode(checkpoint, SENTENCE, forced="Le chien dort sous la table.")


@pytest.mark.parametrize("kind", ["bert", "sentiment"])
def test_models_that_do_not_write_say_so(kind: str, tiny_checkpoint: Tiny) -> None:
    with pytest.raises(ValueError, match=f"tiny-{kind} is an encoder-only model: it does not write text"):
        decode(tiny_checkpoint(kind), SENTENCE)


# ---- sampling -------------------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_text_and_another_seed_another(writer: Checkpoint) -> None:
    strategy = Sample(temperature=1.5, seed=3, max_new_tokens=12)
    first, second = (decode(writer, SENTENCE, strategy) for _ in range(2))
    assert first.tokens.ids == second.tokens.ids
    others = {decode(writer, SENTENCE, replace(strategy, seed=seed)).tokens.ids for seed in range(8)}
    assert len(others) > 4


def test_sampling_neither_reads_nor_moves_the_global_generator(writer: Checkpoint) -> None:
    strategy = Sample(seed=3, max_new_tokens=8)
    expected = decode(writer, SENTENCE, strategy).tokens.ids
    torch.manual_seed(99)
    state = torch.get_rng_state()
    assert decode(writer, SENTENCE, strategy).tokens.ids == expected
    assert torch.equal(torch.get_rng_state(), state)


def test_sampling_does_not_depend_on_other_threads(writer: Checkpoint) -> None:
    seeds = range(8)
    alone = [decode(writer, SENTENCE, Sample(seed=seed, max_new_tokens=8)).tokens.ids for seed in seeds]
    together: dict[int, tuple[int, ...]] = {}

    def run(seed: int) -> None:
        together[seed] = decode(writer, SENTENCE, Sample(seed=seed, max_new_tokens=8)).tokens.ids

    threads = [Thread(target=run, args=(seed,)) for seed in seeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[seed] for seed in seeds] == alone


def test_sampling_from_one_token_is_greedy(writer: Checkpoint) -> None:
    greedy = decode(writer, SENTENCE, Greedy(10)).tokens.ids
    assert decode(writer, SENTENCE, Sample(top_k=1, max_new_tokens=10)).tokens.ids == greedy
    assert decode(writer, SENTENCE, Sample(top_p=1e-6, max_new_tokens=10)).tokens.ids == greedy
    assert decode(writer, SENTENCE, Sample(temperature=0.001, max_new_tokens=10)).tokens.ids == greedy


def test_sampled_candidates_keep_the_models_probability_beside_their_chance(writer: Checkpoint) -> None:
    decoding = decode(writer, SENTENCE, Sample(temperature=2.0, top_k=3, seed=1, max_new_tokens=6))
    for step in decoding.steps:
        kept = [candidate for candidate in step.candidates if candidate.chance > 0]
        assert len(kept) == 3
        assert step.chosen in kept
        assert sum(candidate.chance for candidate in kept) == pytest.approx(1.0, abs=1e-5)
        assert [c.id for c in kept] == [c.id for c in step.candidates[:3]]
        hottest = step.candidates[0]
        ratio = hottest.chance / kept[1].chance
        assert ratio == pytest.approx((hottest.probability / kept[1].probability) ** 0.5, rel=1e-3)


def test_draws_follow_the_chances(tiny_tokenizer: Tokenizer) -> None:
    checkpoint = checkpoint_of(tiny_tokenizer, "decoder-only", tie_embeddings=False)
    strategy = Sample(top_k=4, temperature=1.5, max_new_tokens=1)
    candidates = decode(checkpoint, SENTENCE, strategy).steps[0].candidates[:4]
    n_draws = 400
    drawn = [decode(checkpoint, SENTENCE, replace(strategy, seed=s)).tokens.ids[0] for s in range(n_draws)]
    for candidate in candidates:
        spread = 5 * (candidate.chance * (1 - candidate.chance) / n_draws) ** 0.5
        assert drawn.count(candidate.id) / n_draws == pytest.approx(candidate.chance, abs=spread)
    assert set(drawn) <= {candidate.id for candidate in candidates}


@pytest.mark.parametrize("strategy", (Greedy(), Beam(2)))
def test_a_beginning_given_as_ids_is_taken_as_it_is(tiny_checkpoint, strategy) -> None:
    checkpoint = tiny_checkpoint("translator")
    ids = checkpoint.tokenizer.encode("Le chat")
    as_text = decode(checkpoint, SENTENCE, strategy, forced="Le chat")
    assert decode(checkpoint, SENTENCE, strategy, forced=ids).tokens.ids == as_text.tokens.ids
    single = [id for letter in "Le" for id in checkpoint.tokenizer.encode(letter, continues=True)]
    assert decode(checkpoint, SENTENCE, strategy, forced=single).tokens.ids[: len(single)] == tuple(single)
    ended = decode(checkpoint, SENTENCE, strategy, forced=[*ids, 2])
    assert ended.tokens.ids == (*ids, 2) and ended.finished
    for wrong in ([2, *ids], [1], [0], [10_000]):
        with pytest.raises(ValueError, match=r"forced token 0 is \d+; give ids of 0 to 399 without <pad> and <s>"):
            decode(checkpoint, SENTENCE, strategy, forced=wrong)
