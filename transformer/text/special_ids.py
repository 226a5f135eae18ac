"""Ids that stand for no text, and the ids before and after a text that a model reads or generates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class SpecialIds:
    """Ids of special tokens by function; ``None`` for a missing one, ``others`` for further ones.

    One id may have two functions: GPT-2 begins and ends a text with the same token, and T5 uses one token for padding
    and for the beginning.
    """

    pad: int | None = None
    start: int | None = None
    end: int | None = None
    mask: int | None = None
    others: frozenset[int] = frozenset()

    def __contains__(self, id: object) -> bool:
        return id in self._roles

    def __len__(self) -> int:
        return len(self._roles)

    @cached_property
    def _roles(self) -> dict[int, str]:
        # If an id has several functions, the last one counts.
        jobs = {"mask": self.mask, "end": self.end, "start": self.start, "pad": self.pad}
        return dict.fromkeys(self.others, "other") | {id: role for role, id in jobs.items() if id is not None}

    def role(self, id: int) -> str:
        """Return "pad", "start", "end", "mask", "other", or "" for an id that stands for text."""
        return self._roles.get(id, "")


@dataclass(frozen=True)
class Framing:
    """What the model expects around a text.

    Attributes:
        before: Ids before a text that an encoder or a decoder-only model reads.
        after: Ids after such a text.
        between: Ids between the two sentences of a pair; empty if the model reads no pairs.
        answer: Ids that a decoder begins with when it generates.
        given: Ids that a decoder begins with when the output is given.
        ends: Ids that end an output; the first of them follows a given output.
        never: Ids that are never generated, because training never targeted them.
        ignored: Published settings of the checkpoint that change the output in other programs ("min_length 56").
        starts: Prefixes of sentences in training, by task ("summarize: ").
    """

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    between: tuple[int, ...] = ()
    answer: tuple[int, ...] = ()
    given: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    never: tuple[int, ...] = ()
    ignored: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()

    @property
    def end(self) -> tuple[int, ...]:
        """The token after a given output, or nothing."""
        return self.ends[:1]
