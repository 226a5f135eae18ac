"""Images cut into patches: the tokenizer of a Vision Transformer, and what all such tokenizers share.

Since an image is a text (``levels_in``), it can be typed, be part of an address, and be used wherever a sentence is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

from transformer.config import LEVELS, SPECIAL_TOKENS, ModelConfig, PictureConfig
from transformer.disk.plain_files import json_object
from transformer.errors import CheckpointError, InputError, text_of
from transformer.pictures.patch_numbers import N_SPECIAL, ids_of, levels_of, patches_of, pixels_of
from transformer.text.special_ids import Framing, SpecialIds
from transformer.text.tokenizer import END_ID, MASK_ID, PAD_ID, START_ID, Tokenizer
from transformer.text.tokens import Token, TokenSequence

CLASS_TOKEN = "[CLS]"  # how START_ID is shown: the column from which the class is read
_FIELDS = ("picture_size", "patch_size", "n_levels")


class PatchSequences(Tokenizer):
    """Tokenizer whose tokens are the patches of an image, in reading order.

    A patch is labelled by its position, "r2c3" for row 2, column 3, both from 1. That is also its ``text``, since its
    pixels are not contiguous in the text of the image.

    Attributes:
        per_row: Number of patches in a row of the image.
    """

    per_row: int
    space_in_front = False

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode many images."""
        return [self.encode(text) for text in texts]

    def words(self, text: str) -> list[str]:
        """Return how each patch of an image is shown."""
        return [self.display(id) for id in self.encode(text)]

    def label(self, place: int) -> str:
        """Return the label of the patch at an index in reading order, such as "r1c2"."""
        row, column = divmod(place, self.per_row)
        return f"r{row + 1}c{column + 1}"

    def label_tokens(self, ids: Sequence[int], name: str, inks: Iterable[Iterable], n_before: int) -> TokenSequence:
        """Label ids by their positions in the image.

        Args:
            ids: The ids, ``n_before`` of which come before the patches.
            name: Name of the sequence.
            inks: The pixels of each token.
            n_before: How many ids come before the patches.
        """
        tokens = []
        for index, (id, ink) in enumerate(zip(ids, inks, strict=True)):
            role = self.special.role(id)
            shown = self.display(id) if role else self.label(index - n_before)
            text = "" if role else f" {shown}"
            tokens.append(Token(index, int(id), text, shown, bool(role), role, first=not role, pixels=tuple(ink)))
        return TokenSequence(tuple(tokens), name)


class PatchTokenizer(PatchSequences):
    """Conversion between the text of an image and the ids of its patches; nothing is learned."""

    special = SpecialIds(PAD_ID, START_ID, None, MASK_ID, others=frozenset((END_ID,)))
    kind = "patches"
    alphabet = "pixels"
    framing = Framing(before=(START_ID,), never=(PAD_ID, START_ID, END_ID, MASK_ID))

    def __init__(self, config: PictureConfig) -> None:
        self.config = config
        self.signs = LEVELS[: config.n_levels]
        self.per_row = config.picture_size // config.patch_size

    @classmethod
    def load(cls, path: Path, config: PictureConfig) -> PatchTokenizer:
        """Load the tokenizer.

        Raises:
            CheckpointError: If the file does not describe patches, or describes other patches than the model's.
        """
        try:
            found = json_object(Path(path))
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{path} is not a tokenizer that can be read: {text_of(error)}") from error
        if found != (wanted := _description(config)):
            raise CheckpointError(
                f"{path} does not say how images are cut for this model; it must contain {json.dumps(wanted)}"
            )
        return cls(config)

    def save(self, path: Path) -> None:
        """Write the description of the patches to a file."""
        Path(path).write_text(json.dumps(_description(self.config), indent=2) + "\n", encoding="utf-8")

    @property
    def vocabulary_size(self) -> int:
        """Number of possible patches and special tokens."""
        return self.config.vocabulary_size

    def encode(self, text: str, *, continues: bool = False) -> list[int]:
        """Return the ids of an image, without the class token.

        Raises:
            InputError: If the text is not an image (``levels_in``).
        """
        pixels = torch.tensor(levels_in(text, self.config)).view(self.config.picture_size, -1)
        return ids_of(patches_of(pixels, self.config.patch_size), self.config.n_levels).tolist()

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of a whole image; a masked patch is empty.

        For any other list of patches, the symbols of each patch are joined in order.
        """
        patches = [id for id in ids if id >= N_SPECIAL or id == MASK_ID]
        levels = levels_of(torch.tensor(patches, dtype=torch.long), self.config)
        pixels = pixels_of(levels, self.config) if len(patches) == self.per_row**2 else levels
        return "".join(self.signs[level] for level in pixels.flatten().tolist())

    def sequence(self, ids: Sequence[int], name: str = "source") -> TokenSequence:
        """Label ids by their positions in the image."""
        levels = levels_of(torch.tensor(ids, dtype=torch.long), self.config) / (self.config.n_levels - 1)
        inks = [() if id < N_SPECIAL else ink for id, ink in zip(ids, levels.tolist(), strict=True)]
        return self.label_tokens(ids, name, inks, int(bool(ids) and ids[0] == START_ID))

    def display(self, id: int) -> str:
        """Return the symbols of a patch, wherever it is."""
        if id < N_SPECIAL:
            return CLASS_TOKEN if id == START_ID else SPECIAL_TOKENS[id]
        return "".join(self.signs[level] for level in levels_of(torch.tensor(id), self.config).tolist())


def _description(config: PictureConfig) -> dict[str, object]:
    return {"type": "patches", **{name: getattr(config, name) for name in _FIELDS}}


def levels_in(text: str, config: PictureConfig) -> list[int]:
    """Return the shade of every pixel of an image, from one symbol each; white space and case are ignored.

    The symbols are 0 for nothing, then 1 to 9, a, b … for more ink, row by row.

    Raises:
        InputError: If the number of symbols or one symbol is wrong; the message says which.
    """
    signs = "".join(text.split()).lower()
    known, size = LEVELS[: config.n_levels], config.picture_size
    if wrong := next((sign for sign in signs if sign not in known), None):
        raise InputError(
            f"{wrong!r} is not a pixel. This model reads pictures of {size} × {size} pixels: one character "
            f"for each, from {known[0]} (nothing) to {known[-1]} (full ink), row by row."
        )
    if len(signs) != size**2:
        raise InputError(
            f"The picture has {len(signs)} pixels; this model reads {size} × {size}, which makes {size**2}: "
            f"one character for each, from {known[0]} (nothing) to {known[-1]} (full ink), row by row."
        )
    return [known.index(sign) for sign in signs]


def load_tokenizer(config: ModelConfig, file: Path) -> Tokenizer:
    """Return the tokenizer of one of our own models.

    Raises:
        CheckpointError: If the file does not hold one of its kind.
    """
    return PatchTokenizer.load(file, config) if config.reads_images else Tokenizer.load(file)
