"""A trial pass over a short sound, which finds the parts of a network and what a position reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from transformer.errors import CheckpointError
from transformer.guests.position_kinds import find_positions
from transformer.guests.structure import FoundStack, find_stacks
from transformer.guests.trial_pass import N_TARGET, Trial, close, trial_pass
from transformer.sounds.time_positions import FRAMES, SoundInput

_N_POSITIONS = 12  # of the trial: 1,500 would take gigabytes in a large model
_REACH = 2  # positions before and after its own that two convolutions of three frames may read


def tried_on_sounds(
    network: Any, sound: SoundInput, ids: Tensor
) -> tuple[dict[str, FoundStack], dict[str, Tensor], Trial]:
    """Return a network's stacks, as many ids as each stack read, and the trial pass.

    Args:
        network: The network.
        sound: What it reads of a sound.
        ids: Ids for the decoder, [1, at least 1].

    Raises:
        CheckpointError: If its positions are not two frames each, in order.
    """
    n_positions = min(_N_POSITIONS, sound.n_positions)
    features = torch.randn(1, sound.log_mel.n_mels, FRAMES * n_positions, generator=torch.Generator().manual_seed(0))
    table = _table(network, sound.n_positions)
    whole = table.weight.detach()
    with _shortened(network, table, n_positions):
        inputs = {"input_features": features, "decoder_input_ids": ids[:, :N_TARGET]}
        trial = trial_pass(network, inputs)
        given = {"encoder": torch.zeros(1, n_positions, dtype=torch.long), "decoder": ids[:, :N_TARGET]}
        stacks = find_stacks(network, trial, ids=given, factors=[])
        if "encoder" in stacks:
            stack = stacks["encoder"]
            if stack.position_module is not table:
                raise _other_positions()
            _check_order(network, stack, inputs)
            # What precedes the positions is computed from the sound, not read from a table.
            stack.position_module, stack.position_rows = None, whole
        find_positions(network, stacks.values(), inputs)
    return stacks, given, trial


def _table(network: Any, n_positions: int) -> nn.Embedding:
    """Return the table of the encoder's positions."""
    for module in network.get_encoder().children():
        if isinstance(module, nn.Embedding) and module.num_embeddings == n_positions:
            return module
    raise _other_positions()


@contextmanager
def _shortened(network: Any, table: nn.Embedding, n_positions: int) -> Iterator[None]:
    """Let the encoder read ``n_positions`` only."""
    config = network.get_encoder().config
    before = config.max_source_positions, dict(table.named_parameters())["weight"], table.num_embeddings
    config.max_source_positions, table.num_embeddings = n_positions, n_positions
    table.weight = nn.Parameter(table.weight.detach()[:n_positions], requires_grad=False)
    try:
        yield
    finally:
        config.max_source_positions, table.weight, table.num_embeddings = before


def _read(trial: Trial, stack: FoundStack) -> Tensor:
    """Return what the first layer read: [position, model]."""
    return next(event.input for event in trial.events if event.module is stack.layers[0].block)[0]


def _check_order(network: nn.Module, stack: FoundStack, inputs: dict[str, Tensor]) -> None:
    """Change the frames of one position after another: only vectors near it may change."""
    whole = _read(trial_pass(network, inputs), stack)
    for place in (0, len(whole) // 2, len(whole) - 1):
        features = inputs["input_features"].clone()
        features[..., FRAMES * place : FRAMES * (place + 1)] += 1.0
        read = _read(trial_pass(network, {**inputs, "input_features": features}), stack)
        far = [index for index in range(len(read)) if abs(index - place) > _REACH]
        if not close(read[far], whole[far]) or close(read[place], whole[place]):
            raise _other_positions()


def _other_positions() -> CheckpointError:
    return CheckpointError("its positions are not two frames of a spectrogram each, so there is no time axis to draw")
