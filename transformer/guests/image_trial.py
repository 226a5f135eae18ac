"""A trial pass over images, which finds the parts of a network and which of its tokens are patches."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from transformer.errors import CheckpointError
from transformer.guests.structure import FoundStack, find_stacks, kind_of_rows
from transformer.guests.trial_pass import Trial, close, trial_pass
from transformer.pictures.image_patches import ImageInput


def tried_on_images(network: nn.Module, image: ImageInput) -> tuple[dict[str, FoundStack], dict[str, Tensor], Trial]:
    """Return a network's stacks, as many ids as an image has tokens, and the trial pass.

    Raises:
        CheckpointError: If its tokens are not the patches of the image in reading order, after some special tokens.
    """
    pixels = torch.randn(1, 3, *image.preprocessing.shape, generator=torch.Generator().manual_seed(0))
    trial = trial_pass(network, {"pixel_values": pixels})
    shapes = {(*call.query.shape[::2], *call.key.shape[2:3]) for call in trial.calls}
    if len(shapes) > 1 or any(batch != 1 or n_queries != n_keys for batch, n_queries, n_keys in shapes):
        raise _other_tokens()  # windows, or fewer tokens in later layers
    ids = {"encoder": torch.zeros(1, 0, dtype=torch.long)}
    stacks = find_stacks(network, trial, ids=ids, factors=[])
    if "encoder" in stacks:
        stack = stacks["encoder"]
        ids = {"encoder": torch.zeros(1, len(_read(trial, stack)), dtype=torch.long)}
        stack.position_rows = _position_rows(trial, stack, _read(trial, stack), image)
        _check_order(network, stack, image, pixels)
        rows = stack.position_rows[len(stack.position_rows) - image.n_patches :]
        stack.added = ""
        if not close(rows, rows[:1].expand_as(rows)):
            stack.added, _ = kind_of_rows(stack.position_rows, 0, trained=_has_table(network, rows))
    return stacks, ids, trial


def _read(trial: Trial, stack: FoundStack) -> Tensor:
    """Return what the first layer read, or the norm before it: [position, model]."""
    module = stack.layers[0].block if stack.embedding_norm is None else stack.embedding_norm.module
    return next(event.input for event in trial.events if event.module is module)[0]


def _position_rows(trial: Trial, stack: FoundStack, read: Tensor, image: ImageInput) -> Tensor:
    """Return what is added to each patch: what the first layer reads, less the projected pixels.

    The rows of the tokens before the patches are 0: their vectors are learned as a whole, not computed from pixels.
    """
    n_before = len(read) - image.n_patches
    rows = torch.zeros_like(read)
    for event in trial.events:
        if isinstance(event.module, nn.Conv2d) and n_before >= 0:
            projected = event.output.flatten(2)[0].T  # [patch, model]
            if projected.shape == read[n_before:].shape:
                rows[n_before:] = read[n_before:] - projected
                return rows
    raise _other_tokens()


def _has_table(network: nn.Module, rows: Tensor) -> bool:
    """Whether a network has a trained table as wide as ``rows``, perhaps for another size of images."""
    tables = [each.weight for each in network.modules() if isinstance(each, nn.Embedding)]
    tables += [each for each in network.parameters() if each.ndim == 3 and len(each) == 1]
    return any(each.requires_grad and each.shape[-1] == rows.shape[-1] and each.shape[-2] > 3 for each in tables)


def _check_order(network: nn.Module, stack: FoundStack, image: ImageInput, pixels: Tensor) -> None:
    """Change one patch after another: only the token at its place may change."""
    assert stack.position_rows is not None
    n_before = len(stack.position_rows) - image.n_patches
    whole = _read(trial_pass(network, {"pixel_values": pixels}), stack)
    height, width = image.patch
    for place in {0, image.columns - 1, image.n_patches - 1}:
        row, column = divmod(place, image.columns)
        changed = pixels.clone()
        changed[..., row * height : (row + 1) * height, column * width : (column + 1) * width] += 1.0
        read = _read(trial_pass(network, {"pixel_values": changed}), stack)
        others = [index for index in range(len(read)) if index != n_before + place]
        if not close(read[others], whole[others]) or close(read, whole):
            raise _other_tokens()


def _other_tokens() -> CheckpointError:
    return CheckpointError("its tokens are not the patches of an image in reading order, so there is nothing to draw")
