"""The mask that a reader has chosen, a preset and painted cells: as address parameters and as edits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from transformer.files.checkpoints import Checkpoint
from transformer.runs.attention_view import AttentionView
from transformer.runs.edit_specs import edits_from
from transformer.runs.mask_edits import mask_under
from transformer.text.word_spans import words_of


@dataclass(frozen=True)
class MaskChoices:
    """The mask that the reader has chosen: a preset, painted cells, and the layers that it applies to.

    Attributes:
        preset: One of ``presets``; "own" is the mask of the model.
        size: The number of keys that a query may attend to with the preset "window".
        word: The index of the word that the preset "word" blocks.
        everywhere: Whether the mask applies to all layers, not only to the chosen one.
        cells: Whether each painted cell, (query, key), is allowed.
    """

    preset: str = "own"
    size: int = 2
    word: int = 0
    everywhere: bool = True
    cells: Mapping[tuple[int, int], bool] = field(default_factory=dict)

    @classmethod
    def from_texts(cls, texts: Sequence[str]) -> MaskChoices:
        """Return the choices that ``to_texts`` wrote; invalid ones are left out."""
        found, cells = cls(), dict[tuple[int, int], bool]()
        for text in texts:
            name, _, rest = text.partition(" ")
            if name in ("allow", "block"):
                pairs = filter(None, map(_PAIR.fullmatch, rest.split(",")))
                cells |= {(int(pair[1]), int(pair[2])): name == "allow" for pair in pairs}
            number = int(rest) if rest.isascii() and rest.isdecimal() and len(rest) < 6 else None
            if name == "layer":
                found = replace(found, everywhere=False)
            else:
                size = max(1, number or 2) if name == "window" else found.size
                word = number or 0 if name == "word" else found.word
                found = replace(found, preset=name, size=size, word=word) if name in PRESETS else found
        return replace(found, cells=cells)

    def to_texts(self) -> tuple[str, ...]:
        """Return the choices for the address, such as "window 3"; "own" if none has an effect."""
        number = {"window": f" {self.size}", "word": f" {self.word}"}.get(self.preset, "")
        preset = [] if self.preset == "own" else [self.preset + number]
        return (*preset, *([] if self.everywhere else ["layer"]), *self._cell_texts()) or ("own",)

    def fitting(self, view: AttentionView) -> MaskChoices:
        """Return the choices without those that do not fit the map of ``view``."""
        n_queries, n_keys = view.allowed.shape
        cells = {cell: allowed for cell, allowed in self.cells.items() if cell[0] < n_queries and cell[1] < n_keys}
        preset = self.preset if self.preset in presets(view) else "own"
        word = min(self.word, max(0, len(words_of(view.key)) - 1))
        return replace(self, preset=preset, word=word, cells=cells)

    def painted(self, cells: Iterable[tuple[int, int]], *, allowed: bool) -> MaskChoices:
        """Return the choices after a stroke over ``cells``."""
        return replace(self, cells={**self.cells, **dict.fromkeys(cells, allowed)})

    def specs(self, view: AttentionView) -> tuple[str, ...]:
        """Return the edits as strings (``transformer.runs.edit_specs``)."""
        prefix = f"mask:{view.stack}.{'*' if self.everywhere else view.layer}.{view.kind}="
        values = []
        if self.preset == "window":
            values.append(f"window {self.size}")
        elif self.preset == "word":
            word = words_of(view.key)[self.word]
            values.append("keys " + ",".join(map(str, range(word.start, word.end))))
        elif self.preset != "own":
            values.append(self.preset)
        return tuple(prefix + value for value in (*values, *self._cell_texts()))

    def without_run(self, own: AttentionView, checkpoint: Checkpoint) -> AttentionView:
        """Return the model's own attention with the chosen mask, if a run under the mask is not finite."""
        allowed = mask_under(edits_from(checkpoint, self.specs(own)), own)
        return replace(own, allowed=allowed, weights=np.where(allowed, own.weights, 0.0))

    def _cell_texts(self) -> tuple[str, ...]:
        """Return "allow 2-3,2-4" and "block 0-1": a text for allowed cells, one for blocked cells."""
        painted = []
        for name, wanted in (("allow", True), ("block", False)):
            if pairs := [f"{query}-{key}" for (query, key), is_on in sorted(self.cells.items()) if is_on == wanted]:
                painted.append(f"{name} {','.join(pairs)}")
        return tuple(painted)


_PAIR = re.compile(r"([0-9]{1,5})-([0-9]{1,5})")
PRESETS = ("own", "no_causal", "no_padding", "window", "itself", "word")


def presets(view: AttentionView) -> tuple[str, ...]:
    """Return the presets that are meaningful for this kind of attention."""
    causal = (view.stack, view.kind) == ("decoder", "self")
    left_out = {"no_padding" if causal else "no_causal"}
    left_out |= {"window", "itself"} if view.kind == "cross" else set()
    left_out |= set() if words_of(view.key) else {"word"}
    return tuple(name for name in PRESETS if name not in left_out)


def words_to_block(view: AttentionView) -> tuple[int, ...]:
    """Return the words of the keys that have letters, the most attended to first."""
    words = words_of(view.key)
    received = view.weights.sum(axis=(0, 1))  # [key]
    weights = {index: float(received[word.start : word.end].sum()) for index, word in enumerate(words)}
    named = [index for index, word in enumerate(words) if any(map(str.isalpha, word.text))]
    return tuple(sorted(named, key=lambda index: -weights[index]))
