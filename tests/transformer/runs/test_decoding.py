"""Decoding: with and without the cache; greedy, sampled and by beam; the candidates at every step."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from tests.transformer.tiny import SOURCE, random_model
from transformer import Beam, Checkpoint, Greedy, InputError, Sample, Tokenizer, decode
from transformer.config import POSITIONS
from transformer.probes import Edit
from transformer.runs.beam_search import beam_search
from transformer.runs.decoding_state import NEVER_WRITTEN, greedy_batch
from transformer.runs.decoding_strategies import length_penalty, reshape_logits
from transformer.text.tokenizer import END_ID, PAD_ID, START_ID

SENTENCE = "The cat sat on the mat."
Tiny = Callable[[str], Checkpoint]


@pytest.fixture(scope="module", params=["encoder-decoder", "decoder-only"])
def writer(request: pytest.FixtureRequest, tiny_tokenizer: Tokenizer) -> Checkpoint:
    return checkpoint_of(tiny_tokenizer, request.param, tie_embeddings=False)


def checkpoint_of(tokenizer: Tokenizer, kind: str = "encoder-decoder", **values: object) -> Checkpoint:
    model = random_model(kind, vocabulary_size=tokenizer.vocabulary_size, **{"max_length": 64, **values})
    return Checkpoint(path=Path("random"), model=model, tokenizer=tokenizer, card="")


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


# ---- what a decoding says -------------------------------------------------------------------------------------------


def test_the_text_is_the_translation_or_the_whole_continued_text(writer: Checkpoint) -> None:
    decoding = decode(writer, SENTENCE, Greedy(15))
    if writer.config.has_encoder:
        assert decoding.text == writer.tokenizer.decode(decoding.tokens.ids)
        assert decoding.source.text == SENTENCE
    else:
        assert decoding.text.startswith(SENTENCE)
        assert decoding.source is None


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


def test_many_sentences_at_once_give_what_each_gives_alone(tiny_tokenizer: Tokenizer) -> None:
    checkpoint = checkpoint_of(tiny_tokenizer, tie_embeddings=False)
    sentences = ["The cat sat on the mat.", "It is raining.", "I love you more than you think, my brother."]
    alone = [[id for id in decode(checkpoint, s, Greedy(12)).tokens.ids if id != END_ID] for s in sentences]
    sources = [[*ids, END_ID] for ids in tiny_tokenizer.encode_many(sentences)]
    longest = max(map(len, sources))
    batch = torch.tensor([ids + [PAD_ID] * (longest - len(ids)) for ids in sources])
    assert greedy_batch(checkpoint.model, batch, 12) == alone


@pytest.fixture
def changed(tiny_tokenizer: Tokenizer) -> Checkpoint:
    """A translator of its own, which a test may change."""
    model = random_model.__wrapped__(vocabulary_size=tiny_tokenizer.vocabulary_size, tie_embeddings=False)
    return Checkpoint(path=Path("random"), model=model, tokenizer=tiny_tokenizer, card="")


def test_a_text_stops_at_the_end_token_and_without_one_at_the_limit(changed: Checkpoint) -> None:
    """A model whose projection favours </s> generates nothing else."""
    decoder = changed.model.decoder
    with torch.no_grad():
        decoder.final_norm.bias.fill_(1.0)
        decoder.vocabulary_projection.weight[END_ID] = 3.0
    for strategy in (Greedy(), Sample(top_k=1), Beam(2)):
        decoding = decode(changed, SENTENCE, strategy)
        assert (decoding.tokens.ids, decoding.finished, decoding.text) == ((END_ID,), True, "")
    assert greedy_batch(changed.model, SOURCE, 10) == [[]]
    with torch.inference_mode():
        found = beam_search(changed.model, SOURCE, [START_ID], Beam(3), 3, banned=(*NEVER_WRITTEN, END_ID))
    assert len(found) == 3 and not any(text.finished or len(text.ids) != 3 or END_ID in text.ids for text in found)


def test_the_log_probability_stays_finite_where_a_probability_is_too_small_for_a_float(changed: Checkpoint) -> None:
    with torch.no_grad():
        changed.model.decoder.vocabulary_projection.weight.mul_(300.0)
    decoding = decode(changed, SENTENCE, Greedy(8), forced="il dort")
    assert min(step.chosen.probability for step in decoding.steps) == 0.0
    assert -np.inf < decoding.log_probability < -100


@pytest.mark.parametrize("strategy", [Greedy(3), Greedy(), Sample(seed=1), Beam(2)])
def test_a_forced_beginning_is_kept_and_may_be_given_as_ids(writer: Checkpoint, strategy: object) -> None:
    encode, text = writer.tokenizer.encode, "Le chien dort"
    ids = encode(text) if writer.config.has_encoder else writer.tokenizer.encode_continuation(SENTENCE, text)
    found = decode(writer, SENTENCE, strategy, forced=text).tokens.ids
    assert list(found[: len(ids)]) == ids, "the limit never cuts what is forced"
    assert decode(writer, SENTENCE, strategy, forced=ids).tokens.ids == found
    single = [id for letter in "Le" for id in encode(letter, continues=True)]
    assert decode(writer, SENTENCE, strategy, forced=single).tokens.ids[: len(single)] == tuple(single)
    ended = decode(writer, SENTENCE, strategy, forced=[*ids, END_ID])
    assert ended.tokens.ids == (*ids, END_ID) and ended.finished
    for wrong in ([END_ID, *ids], [START_ID], [PAD_ID], [10_000]):
        with pytest.raises(ValueError, match=r"forced token 0 is \d+; give ids of 0 to 399 without <pad> and <s>"):
            decode(writer, SENTENCE, strategy, forced=wrong)


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


def test_a_text_depends_on_its_seed_and_not_on_the_global_generator(writer: Checkpoint) -> None:
    strategy = Sample(temperature=1.5, seed=3, max_new_tokens=12)
    expected = decode(writer, SENTENCE, strategy).tokens.ids
    torch.manual_seed(99)
    state = torch.get_rng_state()
    assert decode(writer, SENTENCE, strategy).tokens.ids == expected
    assert torch.equal(torch.get_rng_state(), state)
    others = {decode(writer, SENTENCE, replace(strategy, seed=seed)).tokens.ids for seed in range(8)}
    assert len(others) > 4


@given(
    st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=12),
    st.floats(0.001, 1000),
    st.integers(0, 14),
    st.floats(0.001, 1.0),
)
@example([0.0] * 6, 1.0, 2, 1.0)  # exactly two of equal logits
def test_something_to_draw_from_is_always_left(
    logits: list[float], temperature: float, top_k: int, top_p: float
) -> None:
    tensor = torch.tensor(logits)
    chance = torch.softmax(reshape_logits(tensor, temperature=temperature, top_k=top_k, top_p=top_p), dim=-1)
    assert torch.isfinite(chance).all()
    assert float(chance.sum()) == pytest.approx(1.0, abs=1e-4)
    scaled = tensor / temperature  # slightly different logits may become equal here
    assert chance[scaled.argmax()] == chance.max()
    if top_k:
        assert int((chance > 0).sum()) <= top_k


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Sample(temperature=0), "temperature is 0; .*Greedy"),
        (lambda: Sample(temperature=-1.0), "temperature is -1.0"),
        (lambda: Sample(temperature=math.nan), "temperature is nan"),
        (lambda: Sample(temperature=math.inf), "temperature is inf"),
        (lambda: Sample(top_k=-1), "top_k is -1"),
        (lambda: Sample(top_p=0.0), "top_p is 0.0"),
        (lambda: Sample(top_p=1.1), "top_p is 1.1"),
        (lambda: Sample(top_p=math.nan), "top_p is nan"),
        (lambda: Beam(width=0), "width is 0"),
        (lambda: Beam(width=np.int64(0)), "width is .*0"),
        (lambda: Beam(width="4"), "width is '4'"),
        (lambda: Beam(length_penalty=-0.1), "length_penalty is -0.1"),
        (lambda: Greedy(max_new_tokens=0), "max_new_tokens is 0"),
        (lambda: Sample(max_new_tokens=0), "max_new_tokens is 0"),
        (lambda: Beam(max_new_tokens=-2), "max_new_tokens is -2"),
    ],
)
def test_wrong_settings_are_refused_by_name_and_value(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("count", [np.int64(5), np.uint8(5), torch.tensor(5)])
@pytest.mark.parametrize("number", [np.float32(0.5), np.float64(0.5), torch.tensor(0.5), np.int64(1)])
def test_numbers_of_other_libraries_are_settings_too(count: object, number: object) -> None:
    assert Greedy(count).max_new_tokens == Beam(width=count).width == Sample(top_k=count).top_k == 5
    assert Sample(temperature=number).temperature == Sample(top_p=number).top_p == number
    assert Beam(length_penalty=number).length_penalty == number
    with pytest.raises(ValueError, match="width is .*0.5"):
        Beam(width=np.float32(0.5))


# ---- beam search compared with all possible texts -------------------------------------------------------------------


@pytest.mark.parametrize("penalty", [0.0, 0.6, 2.5])
@pytest.mark.parametrize("kind", ["encoder-decoder", "decoder-only"])
@pytest.mark.parametrize("seed", [3, 9, 22])  # the best text is not always the empty one, and depends on the penalty
def test_a_beam_that_drops_nothing_finds_the_best_of_all_texts(seed: int, kind: str, penalty: float) -> None:
    """Of at most four tokens, the last of which is ``</s>``."""
    model = random_model(kind, seed=seed, vocabulary_size=7, tie_embeddings=False)
    source = torch.tensor([[4, 6, 5, 4, 6, 2]]) if model.config.has_encoder else None
    words, scores = [id for id in range(7) if id not in (*NEVER_WRITTEN, END_ID)], {}
    with torch.inference_mode():
        for text in ((*text, END_ID) for n_words in range(4) for text in product(words, repeat=n_words)):
            read = torch.tensor([[START_ID, *text[:-1]]])
            logits = (model(read) if source is None else model(source, read))[0]
            logits[:, list(NEVER_WRITTEN)] = -torch.inf
            scores[text] = float(logits.log_softmax(dim=-1)[range(len(text)), text].sum())
        found = beam_search(model, source, [START_ID], Beam(625, penalty), 4, banned=NEVER_WRITTEN)
    scores = {text: log_p / length_penalty(len(text), penalty) for text, log_p in scores.items()}
    assert found[0].ids == max(scores, key=scores.get)
    assert all(text.finished and text.score == pytest.approx(scores[text.ids], abs=1e-4) for text in found)
