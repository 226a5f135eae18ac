"""A trial pass over images, which finds the parts of a network and which of its tokens are patches."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from transformer.errors import CheckpointError
from transformer.guests.attention_function import GuestPass
from transformer.guests.described_parts import NotExposed, Rows, describe_rows
from transformer.guests.found_embedding import GuestEmbedding, norm_before
from transformer.guests.guest_config import GuestConfig
from transformer.guests.structure import GuestStack, find_stacks
from transformer.guests.trial_pass import Event, Trial, close, trial_pass
from transformer.pictures.image_patches import ImageInput


def tried_on_images(
    network: nn.Module, config: GuestConfig, image: ImageInput, pixels: Tensor
) -> tuple[dict[str, GuestStack], Trial]:
    """Return the stacks that a trial pass over ``pixels`` finds, and this pass.

    Raises:
        CheckpointError: If its tokens are not the patches of the image in reading order, after some special tokens.
    """
    trial = trial_pass(network, {"pixel_values": pixels})
    shapes = {(*call.query.shape[::2], *call.key.shape[2:3]) for call in trial.calls}
    if len(shapes) > 1 or any(batch != 1 or n_queries != n_keys for batch, n_queries, n_keys in shapes):
        raise _other_tokens()  # windows, or fewer tokens in later layers
    stacks = find_stacks(network, trial, config, {"encoder": None})
    for stack in stacks.values():
        first = next(event for event in trial.events if event.module is stack.hooks.blocks[0])
        norm = norm_before(trial.events, first)
        reader = norm or first
        rows = _position_rows(trial, reader.input[0], image)
        _check_order(network, reader, image, pixels)
        stack.embedding = _describe_patches(network, image, rows)
        _connect_patches(stack, rows, reader.module, norm)
    return stacks, trial


def _describe_patches(network: nn.Module, image: ImageInput, rows: Tensor) -> GuestEmbedding:
    """Return our embedding for patches of an image to which a network adds ``rows``."""
    embedding = GuestEmbedding()
    embedding.n_before = len(rows) - image.n_patches
    embedding.projection = NotExposed("the computation from pixels to the first vectors")
    of_patches = rows[embedding.n_before :]
    described, kind = describe_rows(Rows(rows), "rows", trained=_has_table(network, of_patches))
    embedding.add_rows(described, "" if close(of_patches, of_patches[:1].expand_as(of_patches)) else kind)
    return embedding


def _connect_patches(stack: GuestStack, rows: Tensor, reader: nn.Module, norm: Event | None) -> None:
    """Connect what the first layer or norm reads: patches, or tokens before them, plus positions."""
    embedding, hooks = stack.embedding, stack.hooks

    def begin(guest_pass: GuestPass, stream: Tensor) -> Tensor:
        if guest_pass.depth >= 0:
            return stream
        vectors, positions = stream - rows, rows[None]
        shown, placed = embedding.token(vectors), embedding.position(positions)
        stream = stream if shown is vectors and placed is positions else shown + placed
        return embedding.sum(stream)

    hooks.before(reader, begin, first=True)
    if norm is not None:
        embedding.norm = hooks.norm(norm)


def _position_rows(trial: Trial, read: Tensor, image: ImageInput) -> Tensor:
    """Return what is added to each patch: what the first layer reads, minus the projected pixels.

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
    """Return whether a network has a trained table as wide as ``rows``, perhaps for other image sizes."""
    tables = [each.weight for each in network.modules() if isinstance(each, nn.Embedding)]
    tables += [each for each in network.parameters() if each.ndim == 3 and len(each) == 1]
    return any(each.requires_grad and each.shape[-1] == rows.shape[-1] and each.shape[-2] > 3 for each in tables)


def _check_order(network: nn.Module, reader: Event, image: ImageInput, pixels: Tensor) -> None:
    """Change one patch of ``pixels`` after another: only the token at its index may change.

    ``reader`` is the call of the first layer, or of the norm before it, in a pass over the unchanged image.
    """
    whole = reader.input[0]
    n_before = len(whole) - image.n_patches
    height, width = image.patch
    for place in {0, image.columns - 1, image.n_patches - 1}:
        row, column = divmod(place, image.columns)
        changed = pixels.clone()
        changed[..., row * height : (row + 1) * height, column * width : (column + 1) * width] += 1.0
        events = trial_pass(network, {"pixel_values": changed}).events
        read = next(event.input for event in events if event.module is reader.module)[0]
        others = [index for index in range(len(read)) if index != n_before + place]
        if not close(read[others], whole[others]) or close(read, whole):
            raise _other_tokens()


def _other_tokens() -> CheckpointError:
    return CheckpointError("its tokens are not the patches of an image in reading order, so there is nothing to draw")
