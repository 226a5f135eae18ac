"""Outside the cone of a patch not a bit changes; inside, everything that can change does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch

import transformer
from tests.foreign_checkpoints import FOREIGN
from tests.nights import FAMILIES_BY_DAY, by_day
from transformer.interventions.activation_patching import PARTS, Place, probe_of
from transformer.interventions.patch_cone import patch_cone
from transformer.probes import Edit, record
from transformer.runs.edit_specs import edits_from

KINDS = ("translator", "gpt", "bert", "sentiment")
SENTENCE = "The cat sat on the mat."


def noise_at(place: Place) -> Edit:
    """Replace one vector by another one, as a patch does."""

    def change(own: torch.Tensor) -> torch.Tensor:
        new = own.clone()
        generator = torch.Generator().manual_seed(3)
        new[:, place.index] = torch.randn(new[:, place.index].shape, generator=generator, dtype=new.dtype) * 3
        return new

    return Edit(probe_of(place), change)


def changed_places(trace: transformer.Trace, start: Place, edits: Sequence[Edit]) -> tuple[set[Place], set[int]]:
    """Run the tokens twice, with and without the patch; return what differs by at least one bit."""
    model, config = trace.checkpoint.model, trace.checkpoint.config
    ids = [torch.tensor([read.ids]) for read in (trace.source, trace.target) if read is not None]
    runs = []
    for more in ((), (noise_at(start),)):
        with torch.inference_mode(), record([*edits, *more]) as recording:
            model(*ids)
        runs.append(recording.tensors)
    plain, patched = runs

    def differing(name: str) -> list[int]:
        return (plain[name] != patched[name])[0].any(dim=-1).nonzero()[:, 0].tolist()

    found = set()
    for stack in trace.stacks:
        for part in PARTS:
            for layer in range(trace.n_layers(stack)):
                name = probe_of(Place(stack, part, layer, 0))
                if name in plain:
                    found |= {Place(stack, part, layer, index) for index in differing(name)}
    writes = "decoder" if config.has_decoder else "encoder"
    return found, set(differing(f"{writes}.layers.{trace.n_layers(writes) - 1}.residual.out"))


def starts(trace: transformer.Trace) -> list[Place]:
    """Return locations of every part in the first and the last layer of every stack."""
    found = []
    for stack in trace.stacks:
        parts = [part for part in PARTS if part != "cross_attention" or (stack, "cross") in trace.attention_kinds()]
        for layer in {0, trace.n_layers(stack) - 1}:
            found += [Place(stack, part, layer, index) for part in parts for index in (0, 2)]
        found.append(Place(stack, "self_heads", 0, 1))
    return found


@pytest.mark.parametrize("mask", [(), ("itself",), ("window 1",), ("keys 1",), ("block 3-2,4-2", "no_padding")])
@pytest.mark.parametrize("kind", KINDS)
def test_the_cone_is_what_changes(tiny_checkpoint: Callable, kind: str, mask: tuple[str, ...]) -> None:
    checkpoint = tiny_checkpoint(kind)
    stacks = transformer.trace(checkpoint, SENTENCE).stacks
    edits = edits_from(checkpoint, [f"mask:{stack}.*.self={one}" for stack in stacks for one in mask])
    pads = 2 if checkpoint.config.has_encoder else 0
    trace = transformer.trace(checkpoint, SENTENCE, edits=edits, source_pads=pads)
    for start in starts(trace):
        cone = patch_cone(trace, start)
        found, output = changed_places(trace, start, edits)
        assert found <= cone.places, f"{start}: changed outside the cone: {sorted(found - cone.places)[:3]}"
        assert output <= cone.output
        if not mask:
            assert found == cone.places and output == cone.output, f"{start}: the cone is too wide"


def test_in_a_causal_decoder_it_opens_to_the_right_and_upwards(tiny_checkpoint: Callable) -> None:
    trace = transformer.trace(tiny_checkpoint("gpt"), SENTENCE)
    n_tokens = len(trace.target)
    cone = patch_cone(trace, Place("decoder", "residual", 0, 3))
    reads = {(place.layer, place.index) for place in cone.places if place.part == "residual"}
    assert reads == {(0, 3)} | {(1, index) for index in range(3, n_tokens)}
    assert cone.output == set(range(3, n_tokens))


def test_from_the_encoder_it_enters_the_decoder_through_cross_attention(tiny_checkpoint: Callable) -> None:
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE)
    last = trace.n_layers("encoder") - 1
    cone = patch_cone(trace, Place("encoder", "feed_forward", last, 2))
    assert not any(place.stack == "decoder" and place.part in ("residual", "self_attention") and place.layer == 0
                   for place in cone.places)  # fmt: skip
    crossed = {place.index for place in cone.places if place[:3] == ("decoder", "cross_attention", 0)}
    assert crossed == set(range(len(trace.target)))


@pytest.mark.slow
@pytest.mark.parametrize("name", by_day(FOREIGN, FAMILIES_BY_DAY))
def test_other_families(families_folder, name: str) -> None:
    checkpoint = transformer.load(families_folder / name)
    trace = transformer.trace(checkpoint, SENTENCE)
    for start in starts(trace):
        found, output = changed_places(trace, start, ())
        cone = patch_cone(trace, start)
        assert found <= cone.places and output <= cone.output
        assert found == cone.places or name not in ("hf-gpt2", "hf-neox"), f"{start}: the cone is too wide"


@pytest.mark.parametrize(
    "place",
    [
        Place("encoder", "residual", 0, 0),
        Place("decoder", "residual", 9, 0),
        Place("decoder", "feed_forward", 0, 999),
        Place("decoder", "cross_attention", 0, 0),
        Place("decoder", "cross_heads", 0, 0),
        Place("decoder", "self_heads", 0, 9),
        Place("decoder", "logits", 0, 0),
    ],
)
def test_a_location_that_does_not_exist_is_refused(tiny_checkpoint: Callable, place: Place) -> None:
    trace = transformer.trace(tiny_checkpoint("gpt"), SENTENCE)
    with pytest.raises(ValueError, match="this run has no location"):
        patch_cone(trace, place)
