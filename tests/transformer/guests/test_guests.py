"""Guests compared with eager ``transformers`` code: outputs, maps, edits, and unexposed parts."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from tests.foreign_checkpoints import BERT_NAMES
from tests.nights import by_day
from tests.transformer.guests.hugging_face import build
from tests.transformer.guests.their_numbers import equals_theirs, padded_texts, their_model
from tests.transformer.guests.tiny_guests import ENCODERS, GUESTS, WRITERS, guest_checkpoint, network
from tests.transformer.text.foreign_folders import change_fields, word_piece
from transformer import Beam, CheckpointError, Decoding, Greedy, decode, load, trace
from transformer.errors import NotExposedError
from transformer.files.checkpoints import Checkpoint
from transformer.guests.guest_model import GuestModel
from transformer.guests.text_cache import TextCache
from transformer.layers.gradient_step import training_step
from transformer.probes import Edit, record
from transformer.runs.directions import Steering, direction_of
from transformer.runs.edit_specs import edits_from
from transformer.runs.edits import ablate_edge, ablate_head, override_mask, patch, scale_head

TOLERANCE = 1e-6
BY_DAY = ("phi", "mixtral", "bloom", "xlm-roberta", "mbart")
CASES = by_day(GUESTS, BY_DAY)
TEXT = "The cat sat on the mat because it was tired."


def texts(checkpoint: Checkpoint, length: int) -> list[torch.Tensor]:
    return padded_texts(checkpoint.config, length, start=next(iter(checkpoint.framing.answer), 0))[0]


@pytest.mark.parametrize("kind", CASES)
def test_outputs_and_every_map_are_those_of_the_eager_code(guest, kind: str) -> None:
    checkpoint = guest(kind)
    start, theirs = next(iter(checkpoint.framing.answer), 0), their_model(checkpoint)
    for length in (1, 2, 9, 33):
        assert equals_theirs(checkpoint.model, theirs, length, start=start, tolerance=TOLERANCE)


@pytest.mark.parametrize("kind", ["phi", "olmo2"])
def test_steps_of_a_norm_are_computed_when_they_are_read(guest, kind: str) -> None:
    """A complete recording omits what the network does not compute; its reader gets the same bits later."""
    checkpoint, norm = guest(kind), "decoder.final_norm"
    steps = [name for name in checkpoint.model.probes if name.startswith(f"{norm}.")]
    middle = steps[1:-1]
    whole = trace(checkpoint, TEXT, target="It slept.")
    ids = torch.tensor([whole.target.ids])
    with torch.inference_mode(), record(names=middle) as named:
        checkpoint.model(ids)
    with torch.inference_mode(), record() as everything:
        checkpoint.model(ids)
    assert not set(middle) & set(everything.tensors)
    assert len(middle) >= 2 and [name for name in whole.names() if name.startswith(f"{norm}.")] == steps
    for name in middle:
        np.testing.assert_array_equal(whole.values(name), named.tensors[name][0].numpy(), err_msg=name)
    assert whole.activations.n_numbers == sum(whole.values(name).size for name in whole.names())
    changed = trace(checkpoint, TEXT, edits=[Edit(middle[-1], lambda tensor: tensor * 2, "twice")])
    output = whole.activations[steps[-1]].values
    assert np.abs(changed.values(steps[-1])[: len(output)] - output[: len(changed.target)]).max() > 0.1


def test_heads_that_share_their_values_show_and_edit_them_separately(guest) -> None:
    """Falcon multiplies the weights of all heads by one head of values, in code of its own."""
    checkpoint = guest("falcon")
    name = "decoder.layers.0.self_attention"
    found = trace(checkpoint, TEXT)
    weights, values, context = (found.values(f"{name}.{part}") for part in ("weights", "value", "context"))
    np.testing.assert_allclose(weights @ values, context, atol=1e-6)
    assert (values == values[:1]).all() and len(values) == checkpoint.config.n_heads
    edit = Edit(f"{name}.value", lambda tensor: tensor * torch.tensor([1.0, 0, 1, 1]).reshape(1, -1, 1, 1), "head 1")
    changed = trace(checkpoint, TEXT, edits=[edit]).values(f"{name}.context")
    expected = context * np.array([1, 0, 1, 1])[:, None, None]
    np.testing.assert_allclose(changed[:, :9], expected[:, :9], atol=1e-6)  # the prompt; then it writes other tokens


@pytest.mark.parametrize("kind", CASES)
def test_every_probe_is_shown_in_its_shape_and_every_edit_counts(guest, kind: str) -> None:
    checkpoint = guest(kind)
    inputs = texts(checkpoint, 7)
    model = checkpoint.model
    with torch.inference_mode():
        with record() as recording:
            logits = model(*inputs)
        derived = {name: compute() for steps in recording.derived.values() for name, compute in steps.items()}
        tensors = recording.tensors | derived
        assert set(tensors) == set(model.probes) and len(tensors) == len(recording.tensors) + len(derived)
        for name, tensor in tensors.items():
            assert tensor.ndim == 1 + len(model.probes[name].axes), name
        for name in (name for name in model.probes if ".layers.1." in name):
            tensor = tensors[name]
            change = (
                torch.zeros_like if tensor.dtype == torch.bool else lambda tensor: tensor + 0.3 * tensor.square() + 0.1
            )
            with record([Edit(name, change)]):
                changed = model(*inputs)
            assert (changed - logits).abs().max() > 1e-6, name
            with record([Edit(name, torch.clone)]):
                assert (model(*inputs) - logits).abs().max() < 1e-4, name
        assert torch.equal(model(*inputs), logits), "nothing of an edit is left behind"


@pytest.mark.parametrize("kind", ["phi", "mixtral"])
def test_steering_is_what_a_hook_in_their_code_does(guest, kind: str) -> None:
    checkpoint, theirs = guest(kind), their_model(guest(kind))
    spec = f"steer:decoder.1.residual=3 prompts {TEXT} ||| It was cold."
    edits = edits_from(checkpoint, [spec])
    steered = trace(checkpoint, TEXT, edits=edits)
    direction = direction_of(checkpoint, "decoder", 1, Steering.parse(spec.partition("=")[2]))
    added = torch.from_numpy(3 * direction).float()
    theirs.model.layers[1].register_forward_pre_hook(lambda _, given: (given[0] + added, *given[1:]))
    with torch.inference_mode():
        expected = theirs(torch.tensor([steered.target.ids])).logits[0].numpy()
    np.testing.assert_allclose(steered.values("decoder.logits"), expected, atol=1e-5)
    plain = trace(checkpoint, TEXT)
    read = min(len(plain.target), len(steered.target))
    assert np.abs(steered.values("decoder.logits")[:read] - plain.values("decoder.logits")[:read]).max() > 1e-3


@pytest.mark.parametrize("kind", CASES)
def test_a_trace_and_what_is_written_need_no_more_than_the_folder(guest, kind: str) -> None:
    checkpoint = guest(kind)
    run = trace(checkpoint, TEXT, strategy=Greedy(4))
    for view in run.attention_views():
        assert np.allclose(view.weights.sum(axis=-1), 1, atol=1e-5) or kind == "gpt_oss"
        assert not view.weights[:, ~view.allowed].any()
    if not checkpoint.config.has_decoder:
        return
    theirs = their_model(checkpoint)
    found = decode(checkpoint, TEXT, Greedy(4))
    framing = checkpoint.framing
    if kind in WRITERS:
        source = torch.tensor([run.source.ids])
        given = {"input_ids": source, "decoder_input_ids": torch.tensor([[*framing.answer, *found.tokens.ids[:-1]]])}
    else:
        ids = run.target.ids[: len(run.target.ids) - len(found.tokens.ids) + 1]
        given = {"input_ids": torch.tensor([[*ids, *found.tokens.ids[:-1]]])}
    with torch.inference_mode():
        logits = theirs(**given).logits[0, -len(found.tokens.ids) :].clone()
        logits[:, list(framing.never)] = -torch.inf
        assert logits.argmax(dim=-1).tolist() == list(found.tokens.ids)


def log_probabilities(decoding: Decoding) -> np.ndarray:
    """Return those of all tokens that may be written, [step, token]."""
    logits = torch.from_numpy(np.stack([step.logits for step in decoding.steps]))
    return logits.log_softmax(dim=-1).masked_fill(logits == -torch.inf, 0).numpy()


@pytest.fixture
def read_lengths(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the list to which each run of a guest's decoder adds how many positions it reads."""
    lengths: list[int] = []
    decoded = GuestModel._decoded

    def counted(model: GuestModel, ids: torch.Tensor, *given: Any) -> torch.Tensor:
        lengths.append(ids.shape[1])
        return decoded(model, ids, *given)

    monkeypatch.setattr(GuestModel, "_decoded", counted)
    return lengths


@pytest.mark.parametrize("kind", [case for case in CASES if case.values[0] not in ENCODERS])
def test_a_step_reads_one_new_token_and_predicts_the_same(guest, kind: str, read_lengths: list[int]) -> None:
    checkpoint = guest(kind)
    for strategy in (Greedy(8), Beam(width=3, max_new_tokens=6)):
        whole = decode(checkpoint, TEXT, strategy, cached=False)
        read_lengths.clear()
        fast = decode(checkpoint, TEXT, strategy)
        n_steps = len(fast.steps) - (1 if fast.finished and isinstance(strategy, Beam) else 0)
        assert read_lengths[1:n_steps] == [1] * (n_steps - 1)
        assert fast.tokens.ids == whole.tokens.ids
        np.testing.assert_allclose(log_probabilities(fast), log_probabilities(whole), rtol=5e-6, atol=1e-5)


def test_a_decoder_with_more_layers_than_the_encoder_has_a_cache_for_each(tmp_path: Path) -> None:
    checkpoint = load(guest_checkpoint("mt5", tmp_path, num_layers=1, num_decoder_layers=3))
    fast, whole = (decode(checkpoint, TEXT, Greedy(6), cached=cached) for cached in (True, False))
    assert fast.tokens.ids == whole.tokens.ids and checkpoint.model.new_cache() is not None


@pytest.mark.parametrize("kind", ["phi", "mbart"])
def test_edits_and_hooks_of_a_decoder_run_the_whole_text_at_each_step(
    guest, kind: str, read_lengths: list[int]
) -> None:
    checkpoint = guest(kind)
    edit = ablate_head("decoder", layer=0, head=1)
    edited = decode(checkpoint, TEXT, Greedy(4), edits=[edit])
    assert read_lengths == list(range(read_lengths[0], read_lengths[0] + 4))
    assert edited.log_probability == decode(checkpoint, TEXT, Greedy(4), edits=[edit], cached=False).log_probability
    read_lengths.clear()
    hook = checkpoint.model.network.register_forward_hook(lambda *_: None)
    decode(checkpoint, TEXT, Greedy(4))
    hook.remove()
    assert read_lengths == list(range(read_lengths[0], read_lengths[0] + 4))


def test_an_edit_of_the_encoder_acts_on_every_step_with_a_cache(guest, read_lengths: list[int]) -> None:
    checkpoint, edits = guest("mbart"), [scale_head("encoder", layer=1, head=2, factor=3.0)]
    plain = decode(checkpoint, TEXT, Greedy(6))
    read_lengths.clear()
    fast, whole = (decode(checkpoint, TEXT, Greedy(6), edits=edits, cached=cached) for cached in (True, False))
    assert read_lengths.count(1) >= 4
    assert fast.tokens.ids == whole.tokens.ids
    np.testing.assert_allclose(log_probabilities(fast), log_probabilities(whole), atol=1e-5)
    assert abs(fast.log_probability - plain.log_probability) > 1e-3


def _of_one_token(cache: TextCache) -> dict[str, object]:
    return {"use_cache": False}  # a step sees its own token only


def _failing(cache: TextCache) -> dict[str, object]:
    raise IndexError("list index out of range")


@pytest.mark.parametrize("given", [_of_one_token, _failing])
def test_a_cache_that_fails_or_leads_to_other_numbers_is_not_used(
    guest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: Any
) -> None:
    expected = decode(guest("phi"), TEXT, Greedy(6), cached=False)
    monkeypatch.setattr(TextCache, "given", given)
    checkpoint = load(guest_checkpoint("phi", tmp_path))
    found = decode(checkpoint, TEXT, Greedy(6))
    assert found.tokens.ids == expected.tokens.ids and found.log_probability == expected.log_probability
    assert checkpoint.model.new_cache() is None


def test_rotary_angles_that_depend_on_the_length_of_a_text_need_all_of_it(tmp_path: Path) -> None:
    scaled = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10_000.0}
    checkpoint = load(guest_checkpoint("phi", tmp_path, rope_parameters=scaled, max_position_embeddings=16))
    assert checkpoint.model.new_cache() is None


def test_heads_edges_and_masks_are_edited_by_the_functions_of_our_own_models(guest) -> None:
    checkpoint = guest("phi")
    plain = trace(checkpoint, TEXT, strategy=Greedy(1))
    removed = trace(checkpoint, TEXT, strategy=Greedy(1), edits=[ablate_head("decoder", layer=0, head=1)])
    assert not removed.values("decoder.layers.0.self_attention.context")[1].any()
    same = trace(checkpoint, TEXT, strategy=Greedy(1), edits=[scale_head("decoder", layer=0, head=1, factor=1.0)])
    assert np.allclose(same.values("decoder.logits"), plain.values("decoder.logits"), atol=1e-6)
    edge = trace(checkpoint, TEXT, strategy=Greedy(1), edits=[ablate_edge("decoder", layer=1, head=0, query=4, key=2)])
    assert edge.values("decoder.layers.1.self_attention.weights")[0, 4, 2] == 0
    n = len(plain.target)
    allowed = np.eye(n, dtype=bool)
    alone = trace(checkpoint, TEXT, strategy=Greedy(1), edits=[override_mask("decoder", layer=0, allowed=allowed)])
    assert np.array_equal(alone.attention("decoder", 0).weights[0], np.eye(n, dtype=np.float32))
    name = "decoder.layers.0.residual.out"
    patched = trace(checkpoint, TEXT, strategy=Greedy(1), edits=[*removed.run.edits, patch(name, plain.values(name))])
    assert np.allclose(patched.values("decoder.logits"), plain.values("decoder.logits"), atol=1e-5)


CLASSIFIERS = ["roberta, classes", "distilbert, classes", "bert, classes"]


def classifier(case: str, folder: Path) -> Checkpoint:
    build(case, vocab_size=word_piece().get_vocab_size(), pad_token_id=0).save_pretrained(folder)
    settings = {"tokenizer_class": "BertTokenizer", **{f"{job}_token": text for job, text in BERT_NAMES.items()}}
    word_piece().save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return load(folder)


@pytest.mark.parametrize("case", CLASSIFIERS)
def test_the_layers_of_a_classifier_of_sentences_are_shown_and_edited(tmp_path: Path, case: str) -> None:
    checkpoint = classifier(case, tmp_path)
    found, head = trace(checkpoint, TEXT), checkpoint.model.classifier
    with torch.no_grad():
        expected = their_model(checkpoint)(torch.tensor([found.source.ids])).logits[0].numpy()
        first = torch.tensor(found.values("encoder.layers.2.residual.out"))[:1]
        pooled = head.activation(head.dense(first))[0]
    np.testing.assert_allclose(found.values("classifier.logits"), expected, atol=2e-6)
    np.testing.assert_allclose(found.values("classifier.pooled"), pooled, atol=2e-6)
    np.testing.assert_allclose(head.projection(pooled).detach(), expected, atol=2e-6)
    assert checkpoint.config.head_activation == ("relu" if case.startswith("distilbert") else "tanh")
    changed = trace(checkpoint, TEXT, edits=[Edit("classifier.pooled", lambda tensor: tensor * 0, "none")])
    np.testing.assert_allclose(changed.values("classifier.logits"), head.projection.bias.detach(), atol=2e-6)


def test_the_activation_of_a_masked_token_head_is_named(guest) -> None:
    assert guest("hf-bert").config.head_activation == "gelu"


@pytest.mark.parametrize("case", CLASSIFIERS)
def test_a_step_of_training_names_the_part_of_every_parameter(tmp_path: Path, case: str) -> None:
    checkpoint = classifier(case, tmp_path)
    step = training_step(trace(checkpoint, TEXT), stack="encoder")
    parts = {block.part for block in step.blocks if block.layer is None}
    assert parts == {"embedding", "dense", "projection"}
    assert sum(block.numbers for block in step.blocks) == sum(each.numel() for each in checkpoint.model.parameters())


@pytest.mark.parametrize("kind", ["mpnet", "roberta"])
def test_a_sentence_encoder_that_names_a_head_gives_vectors(tmp_path: Path, kind: str) -> None:
    """As in all-mpnet-base-v2, ``config.json`` names an output head that is missing from the weights."""
    path = guest_checkpoint(kind, tmp_path)
    name, fields = GUESTS[kind]
    sizes = {"vocab_size": word_piece().get_vocab_size(), "pad_token_id": 0}
    network(name, {**fields, **sizes}).base_model.save_pretrained(path)
    change_fields(path / "config.json", architectures=[name])
    with pytest.raises(CheckpointError, match="lacks the weights"):
        load(path)
    (path / "1_Pooling").mkdir()
    (path / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    checkpoint = load(path)
    found = trace(checkpoint, TEXT)
    model = transformers.AutoModel.from_pretrained(path).eval()
    with torch.no_grad():
        expected = model(torch.tensor([found.source.ids])).last_hidden_state[0].mean(dim=0)
    np.testing.assert_allclose(found.values("pooling.vector"), expected, atol=2e-6)


def test_each_thread_sees_its_own_edits_only(guest) -> None:
    checkpoint = guest("phi")
    inputs = texts(checkpoint, 9)

    def run(factor: float) -> torch.Tensor:
        with torch.inference_mode(), record([scale_head("decoder", layer=0, head=0, factor=factor)]) as recording:
            checkpoint.model(*inputs)
        return recording.tensors["decoder.logits"]

    factors = [0.0, 1.0, 2.0, 3.0] * 3
    alone, together = {factor: run(factor) for factor in set(factors)}, {}

    def remember(place: int, factor: float) -> None:
        together[place] = run(factor)

    threads = [threading.Thread(target=remember, args=each) for each in enumerate(factors)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(together[place], alone[factor]) for place, factor in enumerate(factors))


def test_opening_another_registers_nothing_more_and_leaves_nothing_behind(tmp_path: Path) -> None:
    from transformers import AttentionInterface

    before = None
    for place in range(2):
        load(guest_checkpoint("opt", tmp_path / str(place)))
        names = set(AttentionInterface._global_mapping)
        assert "glassformer" in names and before in (None, names)
        before = names
    own = transformers.OPTForCausalLM.from_pretrained(tmp_path / "0" / "opt")
    assert own.config._attn_implementation != "glassformer"
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in own.modules())


def test_what_it_does_not_show_is_said_in_a_sentence(guest) -> None:
    experts = trace(guest("mixtral"), TEXT, strategy=Greedy(1))
    with pytest.raises(NotExposedError, match="mixtures of experts"):
        experts.values("decoder.layers.0.feed_forward.hidden")
    shares = experts.values("decoder.layers.0.feed_forward.router")
    assert np.allclose(shares.sum(axis=-1), 1, atol=1e-5) and ((shares > 0).sum(axis=-1) == 2).all()
    with pytest.raises(NotExposedError, match="attention has its own code"):
        trace(guest("bloom"), TEXT, strategy=Greedy(1)).values("decoder.layers.0.self_attention.query")
    with pytest.raises(KeyError, match="no activation 'decoder.layers.9"):
        experts.values("decoder.layers.9.residual.out")


def test_the_samples_by_day_are_of_every_kind() -> None:
    assert set(BY_DAY) & ENCODERS.keys() and set(BY_DAY) & WRITERS.keys() and set(BY_DAY) <= GUESTS.keys()
