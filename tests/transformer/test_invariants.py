"""Invariants of every model with any weights: causality, no influence of padding, exact residual sums."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor

from tests.transformer.tiny import SOURCE, TARGET, random_model, run
from transformer.config import NORMS, POSITIONS
from transformer.fast.shortcut import fast_path
from transformer.models import Model
from transformer.probes import Recording, record

KINDS = ("encoder-decoder", "decoder-only", "encoder-only")
# Every kind with every position scheme; pre- and post-norm alternate, so that each meets every scheme somewhere.
ALL = [(k, p, NORMS[(i + j) % 2]) for i, k in enumerate(KINDS) for j, p in enumerate(POSITIONS)]
DECODERS = [case for case in ALL if case[0] != "encoder-only"]
EXACT = {"rtol": 0, "atol": 0}


def recorded(model: Model, *inputs: Tensor) -> tuple[Tensor, Recording]:
    with torch.inference_mode(), record() as recording:
        return model(*inputs), recording


def padded(ids: Tensor, k: int) -> Tensor:
    return torch.nn.functional.pad(ids, (0, k), value=0)


@pytest.mark.parametrize(("kind", "positions", "norm"), ALL)
def test_rows_sum_to_one_and_masked_entries_are_exactly_zero(kind: str, positions: str, norm: str) -> None:
    model = random_model(kind, positions=positions, norm=norm)
    inputs = {"encoder-decoder": (padded(SOURCE, 2), padded(TARGET, 1)), "decoder-only": (padded(TARGET, 1),)}
    _, recording = recorded(model, *inputs.get(kind, (padded(SOURCE, 2),)))
    names = [name for name in recording.tensors if name.endswith("attention.weights")]
    assert len(names) == {"encoder-decoder": 6}.get(kind, 2)
    for name in names:
        weights, allowed = recording.tensors[name], recording.tensors[name.replace(".weights", ".allowed")]
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]))
        blocked = ~allowed[:, None].expand_as(weights)
        assert (weights[blocked] == 0.0).all()
        assert blocked.any(), "this case masks nothing"


@pytest.mark.parametrize("path", ["readable", "fast"])
@pytest.mark.parametrize(("kind", "positions", "norm"), DECODERS)
def test_a_later_token_leaves_earlier_rows_bitwise_unchanged(kind: str, positions: str, norm: str, path: str) -> None:
    model = random_model(kind, positions=positions, norm=norm)
    changed = TARGET.clone()
    changed[0, 2] = 15
    if path == "fast":
        with fast_path():
            before, after = run(model), run(model, target=changed)
    else:
        before, after = run(model), run(model, target=changed)
    assert torch.equal(before[:, :2], after[:, :2])
    assert not torch.equal(before[:, 2:], after[:, 2:])


@pytest.mark.parametrize("position", range(6))
def test_every_source_token_reaches_every_row_of_the_decoder(position: int) -> None:
    model = random_model()
    changed = SOURCE.clone()
    changed[0, position] = 15
    difference = (run(model, source=changed) - run(model)).abs().amax(dim=-1)
    assert (difference > 1e-4).all()


@pytest.mark.parametrize("path", ["readable", "fast"])
@pytest.mark.parametrize(("kind", "positions", "norm"), ALL)
def test_extra_pads_change_nothing(kind: str, positions: str, norm: str, path: str) -> None:
    model = random_model(kind, positions=positions, norm=norm)
    source, target = padded(SOURCE, 5), padded(TARGET, 3)
    n_rows = (SOURCE if kind == "encoder-only" else TARGET).shape[1]
    if path == "fast":
        with fast_path():
            without, with_pads = run(model), run(model, source, target)
    else:
        without, with_pads = run(model), run(model, source, target)
    torch.testing.assert_close(with_pads[:, :n_rows], without, rtol=0, atol=1e-5)


def test_extra_pads_change_no_class() -> None:
    model = random_model("encoder-only", class_names=("bad", "good", "neither"))
    torch.testing.assert_close(run(model, padded(SOURCE, 5)), run(model), rtol=0, atol=1e-5)


@pytest.mark.parametrize(("kind", "positions", "norm"), ALL)
def test_a_batch_gives_what_each_sentence_gives_alone(kind: str, positions: str, norm: str) -> None:
    model = random_model(kind, positions=positions, norm=norm)
    short = SOURCE[:, :3], TARGET[:, :2]
    batch = run(model, torch.cat((SOURCE, padded(short[0], 3))), torch.cat((TARGET, padded(short[1], 2))))
    alone = run(model, *short)
    torch.testing.assert_close(batch[:1], run(model), rtol=0, atol=1e-5)
    torch.testing.assert_close(batch[1:, : alone.shape[1]], alone, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("kind", "positions", "norm"), ALL)
def test_the_fast_path_gives_what_the_readable_path_gives(kind: str, positions: str, norm: str) -> None:
    model = random_model(kind, positions=positions, norm=norm)
    source = padded(SOURCE, 2)
    readable = run(model, source)
    with fast_path():
        fast = run(model, source)
    torch.testing.assert_close(fast, readable, rtol=0, atol=1e-5)


def stages_of(recording: Recording, layer: str) -> list[tuple[str, str]]:
    """Return the sub-layers of ``layer`` with the residual stream around each: (before, sub-layer, after)."""
    sublayers = [s for s in ("self_attention", "cross_attention", "feed_forward") if f"{layer}.{s}.output" in
                 recording.tensors]  # fmt: skip
    return list(zip(["in", *(f"after_{name}" for name in sublayers[:-1])], sublayers, strict=True))


@pytest.mark.parametrize(("kind", "norm"), list(product(KINDS, NORMS)))
def test_residual_identities(kind: str, norm: str) -> None:
    """pre: after = before + sub-layer(norm(before)). post: after = norm(before + sub-layer(before))."""
    model = random_model(kind, norm=norm)
    inputs = {"encoder-decoder": (SOURCE, TARGET), "decoder-only": (TARGET,), "encoder-only": (SOURCE,)}[kind]
    _, recording = recorded(model, *inputs)
    tensor = recording.tensors
    checked = 0
    for stack in ("encoder", "decoder"):
        for index in range(getattr(model.config, f"n_{stack}_layers")):
            layer = f"{stack}.layers.{index}"
            stages = stages_of(recording, layer)
            for number, (before, sublayer) in enumerate(stages):
                after = "out" if number + 1 == len(stages) else f"after_{sublayer}"
                stream, result = tensor[f"{layer}.residual.{before}"], tensor[f"{layer}.residual.{after}"]
                added, normed = tensor[f"{layer}.{sublayer}.output"], tensor[f"{layer}.{sublayer}_norm.output"]
                if norm == "pre":
                    torch.testing.assert_close(result, stream + added, **EXACT)
                    torch.testing.assert_close(tensor[f"{layer}.{sublayer}_norm.input"], stream, **EXACT)
                else:
                    torch.testing.assert_close(tensor[f"{layer}.{sublayer}_norm.input"], stream + added, **EXACT)
                    torch.testing.assert_close(result, normed, **EXACT)
                checked += 1
            following = f"{stack}.layers.{index + 1}.residual.in"
            if following in tensor:
                torch.testing.assert_close(tensor[following], tensor[f"{layer}.residual.out"], **EXACT)
        if model.config.n_encoder_layers and stack == "encoder" and norm == "pre":
            last = tensor[f"encoder.layers.{model.config.n_encoder_layers - 1}.residual.out"]
            torch.testing.assert_close(tensor["encoder.final_norm.input"], last, **EXACT)
    assert checked == {"encoder-decoder": 10, "decoder-only": 4, "encoder-only": 4}[kind]


@pytest.mark.parametrize("norm", NORMS)
def test_only_pre_norm_models_have_a_final_norm(norm: str) -> None:
    probes = random_model(norm=norm).probes
    assert ("encoder.final_norm.output" in probes) == ("decoder.final_norm.output" in probes) == (norm == "pre")


def test_cross_attention_reads_the_encoders_output() -> None:
    model = random_model()
    _, recording = recorded(model, SOURCE, TARGET)
    memory = recording.tensors["encoder.final_norm.output"]
    attention = model.decoder.layers[1].cross_attention
    with torch.inference_mode():
        value = attention.split_heads(attention.value_projection(memory))
    assert torch.equal(recording.tensors["decoder.layers.1.cross_attention.value"], value)
    assert recording.tensors["decoder.layers.1.cross_attention.weights"].shape == (1, 2, 4, 6)


def test_the_names_and_axes_that_pages_rely_on() -> None:
    """The table of names in DESIGN, for an encoder-decoder."""
    probes = random_model().probes
    axes = {name: probe.axes for name, probe in probes.items()}
    for attention in ("encoder.layers.0.self_attention", "decoder.layers.1.self_attention",
                      "decoder.layers.1.cross_attention"):  # fmt: skip
        for part in ("query", "key", "value"):
            assert axes[f"{attention}.{part}"] == ("head", "position", "channel")
        assert axes[f"{attention}.scores"] == axes[f"{attention}.weights"] == ("head", "query", "key")
        assert axes[f"{attention}.allowed"] == ("query", "key")
        assert axes[f"{attention}.context"] == ("head", "query", "channel")
        assert axes[f"{attention}.output"] == ("position", "model")
    for stack in ("encoder", "decoder"):
        for part in ("token", "position", "sum"):
            assert axes[f"{stack}.embedding.{part}"] == ("position", "model")
        assert axes[f"{stack}.layers.0.feed_forward.pre_activation"] == ("position", "hidden")
        assert axes[f"{stack}.layers.0.feed_forward.hidden"] == ("position", "hidden")
        assert axes[f"{stack}.layers.0.feed_forward.output"] == ("position", "model")
        for norm in ("layers.0.self_attention_norm", "layers.0.feed_forward_norm", "final_norm"):
            assert axes[f"{stack}.{norm}.mean"] == axes[f"{stack}.{norm}.std"] == ("position",)
            for part in ("input", "normalized", "output"):
                assert axes[f"{stack}.{norm}.{part}"] == ("position", "model")
        for stage in ("in", "after_self_attention", "out"):
            assert axes[f"{stack}.layers.0.residual.{stage}"] == ("position", "model")
    assert axes["decoder.layers.0.residual.after_cross_attention"] == ("position", "model")
    assert axes["decoder.logits"] == ("position", "vocabulary")
    assert random_model("encoder-only").probes["encoder.logits"].axes == ("position", "vocabulary")
    assert random_model("encoder-only", class_names=("a", "b")).probes["classifier.logits"].axes == ("class",)


@pytest.mark.parametrize(("kind", "positions", "norm"), ALL)
def test_every_probe_is_reached_and_declares_as_many_axes_as_its_tensor_has(
    kind: str, positions: str, norm: str
) -> None:
    model = random_model(kind, positions=positions, norm=norm)
    inputs = {"encoder-decoder": (SOURCE, TARGET), "decoder-only": (TARGET,), "encoder-only": (SOURCE,)}[kind]
    _, recording = recorded(model, *inputs)
    assert set(recording.tensors) == set(model.probes)
    for name, tensor in recording.tensors.items():
        assert tensor.dim() == 1 + len(model.probes[name].axes), name
        assert tensor.shape[0] == 1
        assert torch.isfinite(tensor).all(), name
