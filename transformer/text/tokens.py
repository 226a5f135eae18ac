"""Tokens and token sequences, which label the axes of every figure."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

_TOKEN_BYTES = 600  # a token without its texts and pixels
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def visible(raw: bytes) -> str:
    """Return readable bytes: a space as ``·``, a line break as ``⏎``, bytes of no character as ``⟨F0⟩``."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return "".join(chr(byte) if 32 < byte < 127 else f"⟨{byte:02X}⟩" for byte in raw).replace("⟨20⟩", "·")
    text = text.replace(" ", "·").replace("\n", "⏎").replace("\t", "⇥")
    return "".join(c if c.isprintable() else f"⟨{ord(c):02X}⟩" for c in text)


@dataclass(frozen=True)
class Token:
    """One token of one sequence.

    Attributes:
        text: Exact piece of the sentence, including spaces.
        display: How it is shown: a leading space becomes ``·``, a lone byte ``⟨F0⟩``, a line break ``⏎``.
        special: Whether it is ``<s>``, ``</s>``, ``<pad>``, ``<mask>`` or the like, which are not part of the sentence.
        role: Which special token it is: "pad", "start", "end", "mask" or "other"; "task" for words of a task prefix
            ("translate English to French:").
        first: Whether the text, or a line of it, begins here, without the space that some tokenizers add in front.
        pixels: The pixels of an image patch (or mean colours of fewer cells) in reading order: ink from 0 to 1, or
            colours "#rrggbb".
    """

    index: int
    id: int
    text: str
    display: str
    special: bool = False
    role: str = ""
    first: bool = False
    pixels: tuple[float | str, ...] = ()

    @property
    def is_padding(self) -> bool:
        """Whether it is padding; the padding token with which T5 and Marian begin an output does not count."""
        return self.role == "pad" and self.index > 0

    @property
    def is_sink(self) -> bool:
        """Whether it may be an attention sink: a special token, but no blank, which is attended to as a word."""
        return self.special and self.role != "mask"

    @property
    def starts_word(self) -> bool:
        """Whether a new word begins here (``False`` for sub-words that continue a word)."""
        return self.special or self.first or self.display.startswith(("·", "⏎"))


@dataclass(frozen=True)
class TokenSequence(Sequence):
    """The tokens along one axis, in order.

    ``name`` says which sequence it is (``"source"``, ``"target"``, ``"prediction"``). A word that occurs twice stays
    two tokens: ``labels`` are unique.
    """

    tokens: tuple[Token, ...]
    name: str = "source"

    def __post_init__(self) -> None:
        for position, token in enumerate(self.tokens):
            if token.index != position:
                raise ValueError(
                    f"TokenSequence: token {token.display!r} carries index {token.index} but stands at "
                    f"position {position}; number the tokens from 0 in order"
                )

    @property
    def n_bytes(self) -> int:
        """Approximate memory that the tokens take, in bytes."""
        texts = sum(len(token.text) + len(token.display) + 32 * len(token.pixels) for token in self.tokens)
        return _TOKEN_BYTES * len(self.tokens) + texts

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> Token:
        return self.tokens[index]

    def __iter__(self) -> Iterator[Token]:
        return iter(self.tokens)

    @property
    def ids(self) -> tuple[int, ...]:
        """Token ids."""
        return tuple([token.id for token in self.tokens])

    @property
    def displays(self) -> tuple[str, ...]:
        """What is shown for each token; a repeated word is repeated."""
        return tuple([token.display for token in self.tokens])

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Unique labels: the second ``·the`` of a sentence is ``·the₂``, the third ``·the₃``."""
        number: Counter[str] = Counter()
        labels: dict[str, None] = {}  # a set that keeps its order
        for display in self.displays:
            number[display] += 1
            while (label := _with_index(display, number[display])) in labels:  # the text itself may contain a ``the₂``
                number[display] += 1
            labels[label] = None
        return tuple(labels)

    @cached_property
    def patches(self) -> tuple[int, ...]:
        """Positions of image patches."""
        return tuple(token.index for token in self.tokens if token.pixels)

    @cached_property
    def patches_across(self) -> int | None:
        """Number of patches along a side, if there is a whole square image; ``None`` otherwise."""
        side = math.isqrt(len(self.patches))
        return side if side and side**2 == len(self.patches) else None

    def is_class_token(self, index: int) -> bool:
        """Return whether a token is the special one before the patches of an image."""
        return index == 0 and bool(self.patches) and self.tokens[0].special

    @property
    def text(self) -> str:
        """The sentence without special tokens and without the space that the tokenizer added in front."""
        return "".join(token.text for token in self.tokens if not token.special).removeprefix(" ")


def _with_index(display: str, number: int) -> str:
    return display if number == 1 else display + str(number).translate(_SUBSCRIPTS)
