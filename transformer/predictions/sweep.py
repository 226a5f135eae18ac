"""Many variants of one text in few passes: each row of a batch replaces other activations.

Every pass begins with the unchanged texts, and all its other rows are variants of the last of them. So an effect is a
difference within one pass, and a replacement without effect gives exactly 0.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transformer.fast.shortcut import fast_path
from transformer.models import Model
from transformer.predictions.target import logits_at
from transformer.probes import Edit, record
from transformer.runs.recording_size import rows_that_fit
from transformer.runs.traces import Trace

TOKENS_PER_PASS = 1024  # rows × tokens; more needs memory and saves no time
Text = Mapping[str, Sequence[int]]  # token ids by the stack that reads them


class Replacement(NamedTuple):
    """What replaces ``tensor[index]`` of the probe ``name``; the tensor has no batch axis.

    ``value`` is a number or a tensor; ``None`` stands for what the first text of the pass has there.
    """

    name: str
    index: Any
    value: Tensor | float | None


class Pass(NamedTuple):
    """One pass: the first ``len(logits)`` rows of a batch are the texts and some variants.

    Attributes:
        logits: [row, position or class …], in the order of the texts and variants.
        tensors: The recorded activations, [batch, …].
    """

    logits: Tensor
    tensors: Mapping[str, Tensor]


def text_of(trace: Trace) -> Text:
    """Return the token ids that a run read."""
    return {stack: trace.tokens(stack).ids for stack in trace.stacks}


def n_rows(model: Model, text: Text, *, tokens: int = TOKENS_PER_PASS) -> int:
    """Return how many rows of up to ``tokens`` tokens a pass has; fewer if their recording does not fit."""
    source, target = len(text.get("encoder", ())), len(text.get("decoder", ()))
    return rows_that_fit(model, tokens // (source + target), source=source, target=target)


@torch.inference_mode()
def run_texts(model: Model, texts: Sequence[Text], positions: Sequence[int] | None = None) -> Tensor:
    """Return the logits of one position, or of the classes, of each text: [text, vocabulary or class].

    Texts of the same length with the same position share a pass, so that none is padded.
    """
    alike: dict[tuple[int, ...], list[int]] = {}
    for index, text in enumerate(texts):
        position = 0 if positions is None else positions[index]
        alike.setdefault((position, *map(len, text.values())), []).append(index)
    found: dict[int, Tensor] = {}
    for (position, *_), indices in alike.items():
        rows = n_rows(model, texts[indices[0]])
        for start in range(0, len(indices), rows):
            chunk = indices[start : start + rows]
            ids = {
                stack: torch.tensor([texts[index][stack] for index in chunk], device=model.device)
                for stack in texts[chunk[0]]
            }
            with fast_path():
                found |= zip(chunk, logits_at(model, ids, [position])[:, 0], strict=True)
    return torch.stack([found[index] for index in range(len(texts))])


@torch.inference_mode()
def sweep(
    model: Model,
    texts: Sequence[Text],
    variants: Sequence[Sequence[Replacement]],
    *,
    positions: Sequence[int] | slice = slice(None),
    rows: int | None = None,
    names: Collection[str] = (),
    edits: Sequence[Edit] = (),
) -> Iterator[Pass]:
    """Run the ``texts`` and variants of the last one, in passes of at most ``rows`` variants.

    Variants that change the encoder and those that do not are in different passes; for the latter it runs only once.
    The caller counts the variants for its progress bar, and stops by not asking for more.

    Args:
        model: The model.
        texts: Texts of the same length.
        variants: The replacements of each variant.
        positions: Positions whose logits are computed.
        rows: By default as many as fit into a pass (``n_rows``).
        names: Activations to record.
        edits: Edits that every row has.
    """
    rows = max(1, n_rows(model, texts[-1]) - len(texts)) if rows is None else rows
    ids = {stack: torch.tensor([text[stack] for text in texts], device=model.device) for stack in texts[-1]}
    memory = None  # the output of the encoder
    reuses = model.config.kind == "encoder-decoder" and not any(map(_in_encoder, names))
    by_stack = groupby(variants, key=lambda variant: reuses and not any(_in_encoder(part.name) for part in variant))
    for unchanged, group in by_stack:
        alike = tuple(group)
        if unchanged and memory is None:
            with record(edits, ()):
                memory = model.encode(ids["encoder"])
        for start in range(0, len(alike), rows):
            chunk = alike[start : start + rows]
            which = [*range(len(texts)), *[len(texts) - 1] * len(chunk)]  # the text of each row
            replaced = _edits(chunk, first=len(texts))
            batch = {stack: own[which] for stack, own in ids.items()}
            with record((*edits, *replaced), names) as recording:
                logits = logits_at(model, batch, positions, memory=memory[which] if unchanged else None)
            yield Pass(logits, recording.tensors)


def _in_encoder(name: str) -> bool:
    return name.startswith("encoder")


def _edits(variants: Sequence[Sequence[Replacement]], *, first: int) -> list[Edit]:
    """Return edits that change row ``first + b`` of the batch as ``variants[b]`` says."""
    by_name: dict[str, list[tuple[int, Replacement]]] = {}
    for row, variant in enumerate(variants, start=first):
        for part in variant:
            by_name.setdefault(part.name, []).append((row, part))

    def replace(tensor: Tensor, parts: Sequence[tuple[int, Replacement]]) -> Tensor:
        new = tensor.clone()
        for row, (_, index, value) in parts:
            new[row][index] = tensor[0][index] if value is None else value
        return new

    return [
        Edit(name, lambda tensor, parts=parts: replace(tensor, parts), "another part replaced in each row")
        for name, parts in by_name.items()
    ]
