"""Edits of other families equal Hugging Face's model with the inputs of W_O and W_2 changed by hooks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

import transformer
from tests.transformer.guests.their_numbers import their_model
from transformer import Checkpoint, ablate_head, scale_head
from transformer.probes import Edit
from transformer.runs.edits import mean_ablate_head

SENTENCE, TARGET = "The cat sat on the mat.", "Le chat est fatigué."
LAYER, HEAD, UNIT = 1, 2, 17
# The edited attention, and the name of its W_O in Hugging Face's model
OUTPUTS = {
    "hf-llama": ("decoder", "self", f"model.layers.{LAYER}.self_attn.o_proj"),  # three heads share a head of keys
    "hf-gemma2": ("decoder", "self", f"model.layers.{LAYER}.self_attn.o_proj"),
    "hf-neox": ("decoder", "self", f"gpt_neox.layers.{LAYER}.attention.dense"),
    "hf-t5": ("decoder", "cross", f"decoder.block.{LAYER}.layer.1.EncDecAttention.o"),
    "hf-marian": ("decoder", "cross", f"model.decoder.layers.{LAYER}.encoder_attn.out_proj"),
}
# The stack of a gated layer, and the name of its W_2 in Hugging Face's model
GATED = {
    "hf-llama": ("decoder", f"model.layers.{LAYER}.mlp.down_proj"),
    "hf-gemma2": ("decoder", f"model.layers.{LAYER}.mlp.down_proj"),
    "hf-t5": ("encoder", f"encoder.block.{LAYER}.layer.1.DenseReluDense.wo"),
}


def replayed(checkpoint: Checkpoint, layer: str, change: Callable[[Tensor], Tensor]) -> np.ndarray:
    """Return Hugging Face's logits with ``change`` applied to the input of the linear layer ``layer``."""
    model = their_model(checkpoint)
    model.get_submodule(layer).register_forward_pre_hook(lambda _, inputs: (change(inputs[0]),))
    found = traced(checkpoint)
    asked = {"input_ids": torch.tensor([(found.source or found.target).ids])}
    if found.source and found.target:
        asked["decoder_input_ids"] = torch.tensor([found.target.ids])
    with torch.no_grad():
        return model(**asked).logits[0].numpy()


def traced(checkpoint: Checkpoint, *edits: Edit) -> transformer.Trace:
    target = None if checkpoint.config.kind == "encoder-only" else TARGET
    return transformer.trace(checkpoint, SENTENCE, target, edits=edits)


def same(checkpoint: Checkpoint, edit: Edit, layer: str, change: Callable[[Tensor], Tensor]) -> None:
    whole, edited = traced(checkpoint), traced(checkpoint, edit)
    logits = [run.values(f"{run.stacks[-1]}.logits") for run in (whole, edited)]
    assert np.abs(logits[1] - logits[0]).max() > 1e-3  # the edit has an effect
    np.testing.assert_allclose(logits[1], replayed(checkpoint, layer, change), atol=2e-5)


@pytest.mark.slow
@pytest.mark.sample("name", of=2)
@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("what", ["zero", "mean", "double"])
def test_an_edited_head_is_an_edited_slice_of_what_their_output_projection_reads(
    guest: Callable, name: str, what: str
) -> None:
    checkpoint = guest(name)
    stack, kind, output = OUTPUTS[name]
    width = traced(checkpoint).values(f"{stack}.layers.{LAYER}.{kind}_attention.context").shape[-1]

    def change(heads: Tensor) -> Tensor:  # [batch, position, head · channel]
        heads = heads.clone()
        own = heads[..., HEAD * width : (HEAD + 1) * width]
        if what != "mean":
            own *= 0.0 if what == "zero" else 2.0
        elif stack == "encoder":
            own[:] = own.mean(dim=1, keepdim=True)
        else:  # no row depends on later ones
            own[:] = torch.stack([own[:, : row + 1].mean(dim=1) for row in range(own.shape[1])], dim=1)
        return heads

    place = {"layer": LAYER, "kind": kind, "head": HEAD}
    edits = {
        "zero": ablate_head(stack, **place),
        "mean": mean_ablate_head(stack, **place),
        "double": scale_head(stack, **place, factor=2.0),
    }
    same(checkpoint, edits[what], output, change)


@pytest.mark.parametrize("name", GATED)
def test_a_silenced_unit_of_a_gated_layer_is_a_zero_that_their_last_matrix_reads(guest: Callable, name: str) -> None:
    def silenced(units: Tensor) -> Tensor:  # [batch, position, unit]
        return torch.cat((units[..., :UNIT], torch.zeros_like(units[..., :1]), units[..., UNIT + 1 :]), dim=-1)

    stack, last = GATED[name]
    edit = Edit(f"{stack}.layers.{LAYER}.feed_forward.hidden", silenced, f"no unit {UNIT}")
    same(guest(name), edit, last, silenced)
