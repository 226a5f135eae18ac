"""The ids that stand for no text, and what stands before and after a text that a model reads or writes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class SpecialIds:
    """Ids with a job: ``None`` where a tokenizer has no such token. ``others``: special ids without one of these jobs.

    One id may have two jobs: GPT-2 begins and ends a text with the same token; T5 pads and begins with the same one.
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
        jobs = {"mask": self.mask, "end": self.end, "start": self.start, "pad": self.pad}  # of two jobs the last counts
        return dict.fromkeys(self.others, "other") | {id: role for role, id in jobs.items() if id is not None}

    def role(self, id: int) -> str:
        """ "pad", "start", "end", "mask", "other", or "" for an id that stands for text."""
        return self._roles.get(id, "")


@dataclass(frozen=True)
class Framing:
    """What the model expects around a text.

    ``before`` and ``after`` surround a text that an encoder, or a decoder-only model, reads. A decoder begins with
    ``answer`` when it writes, with ``given`` when the answer is given, and one of ``ends`` ends it; the first of them
    stands behind a given answer. ``never``: ids that are never written, for training never asked for them. ``ignored``:
    settings that the checkpoint was published with and that change what is written elsewhere ("min_length 56").
    ``starts``: what a sentence began with in training, by task ("summarize: ").
    """

    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    answer: tuple[int, ...] = ()
    given: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    never: tuple[int, ...] = ()
    ignored: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()

    @property
    def end(self) -> tuple[int, ...]:
        """The token behind a given answer, or nothing."""
        return self.ends[:1]
