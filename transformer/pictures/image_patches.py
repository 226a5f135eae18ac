"""An image file as the patches that a model of ``transformers`` reads: their ids, labels and pixels.

After the special ids, an id is the number of an image times ``_STRIDE`` plus the position of the patch in it. So a row
of ids determines the pixels that the model reads, even if a patch is left out (``MASK_ID``) or comes from another
image.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from transformer.pictures.image_files import one_at_a_time, read_image
from transformer.pictures.patch_tokenizer import PatchSequences
from transformer.pictures.preprocessing import Preprocessing
from transformer.text.numbered_files import NumberedFiles
from transformer.text.special_ids import Framing, SpecialIds
from transformer.text.tokens import TokenSequence

MASK_ID, N_SPECIAL = 0, 64
_STRIDE = 2**16  # more than the patches of any image here
_KEPT = 16  # images whose pixels are kept
_CELLS = ((100, 8), (1000, 4), (_STRIDE, 2))  # the most patches, and cells along a side of each where it is drawn


@dataclass(frozen=True)
class ImageInput:
    """What a model reads of an image.

    Attributes:
        preprocessing: How an image becomes numbers.
        patch: (height, width) of a patch, in pixels.
        before: Names of the tokens before the patches: the class token, registers.
        assumed: Whether the folder does not state how an image is prepared. The size is then the config's, and the
            other settings are the usual ones for the type of model.
    """

    preprocessing: Preprocessing
    patch: tuple[int, int]
    before: tuple[str, ...] = ()
    assumed: bool = False

    @property
    def rows(self) -> int:
        """Number of rows of patches."""
        return self.preprocessing.shape[0] // self.patch[0]

    @property
    def columns(self) -> int:
        """Number of columns of patches."""
        return self.preprocessing.shape[1] // self.patch[1]

    @property
    def n_patches(self) -> int:
        """Number of patches."""
        return self.rows * self.columns


class ImageTokenizer(PatchSequences):
    """Conversion between the text of an image (``image_text``) and the ids of its patches."""

    kind, alphabet = "image", "byte-level"

    def __init__(self, image: ImageInput) -> None:
        self.image, self.per_row = image, image.columns
        first = range(1, 1 + len(image.before))
        self.special = SpecialIds(start=1 if first else None, mask=MASK_ID, others=frozenset(first[1:]))
        self.framing = Framing(before=tuple(first), never=(MASK_ID, *first))
        self._images = NumberedFiles(self._read, most=_KEPT)

    def _read(self, text: str) -> Tensor:
        """Return what the network reads of an image."""
        with one_at_a_time:
            return self.image.preprocessing.pixels(read_image(text))

    def __deepcopy__(self, memo: object) -> ImageTokenizer:
        """Return itself: a copy of a model reads the same images, by the same numbers."""
        return self

    @property
    def vocabulary_size(self) -> int:
        """Number of special tokens and of patches of one image."""
        return N_SPECIAL + self.image.n_patches

    def encode(self, text: str, *, continues: bool = False) -> list[int]:
        """Return the ids of the patches of an image.

        Raises:
            InputError: If the text names no image that this process has.
        """
        first = N_SPECIAL + _STRIDE * self._images.number(text.strip())
        return list(range(first, first + self.image.n_patches))

    def encode_with_blanks(self, text: str) -> list[int]:
        """Return ``encode``: nothing in an image is a blank."""
        return self.encode(text)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of the image that the first patch belongs to."""
        patch = next((id for id in ids if id >= N_SPECIAL), None)
        return "" if patch is None else self._images.text((patch - N_SPECIAL) // _STRIDE)

    def sequence(self, ids: Sequence[int], name: str = "source") -> TokenSequence:
        """Label ids by their positions in the image."""
        return self.label_tokens(ids, name, self.thumbnails(ids), len(self.image.before))

    def display(self, id: int) -> str:
        """Return the name of a special token, or the position of a patch in its image."""
        return ("[MASK]", *self.image.before)[id] if id < N_SPECIAL else self.label((id - N_SPECIAL) % _STRIDE)

    def thumbnails(self, ids: Sequence[int]) -> list[list[str]]:
        """Return the colours of a few cells of every patch, "#rrggbb"; none for a special token."""
        found: dict[int, list[list[str]]] = {}
        for number in {(id - N_SPECIAL) // _STRIDE for id in ids if id >= N_SPECIAL}:
            patches = self._patches(self.image.preprocessing.shades(self._images.tensor(number)))
            found[number] = [list(map(_hexadecimal, cells)) for cells in self._cells(patches)]
        places = [divmod(id - N_SPECIAL, _STRIDE) for id in ids]
        return [[] if id < N_SPECIAL else found[number][at] for id, (number, at) in zip(ids, places, strict=True)]

    def _cells(self, patches: Tensor) -> list[list[list[float]]]:
        """Return the mean colour of a few cells of each patch, [patch, cell, channel]."""
        side = next(cells for most, cells in _CELLS if len(patches) <= most)
        side = min(side, *self.image.patch)
        return F.adaptive_avg_pool2d(patches, side).flatten(2).transpose(1, 2).tolist()

    def pixels(self, ids: Tensor) -> Tensor:
        """Return what the network reads for [batch, position] ids: [batch, channel, row, column]."""
        offset = len(self.image.before)
        rows = ids[:, offset : offset + self.image.n_patches].tolist()
        return torch.stack([self._laid(row) for row in rows])

    def _laid(self, ids: list[int]) -> Tensor:
        """Return the pixels of patches in reading order; those of a masked one are 0."""
        number, first = divmod(ids[0] - N_SPECIAL, _STRIDE)
        if ids[0] >= N_SPECIAL and first == 0 and ids == list(range(ids[0], ids[0] + len(ids))):
            return self._images.tensor(number)
        (height, width), channels = self.image.patch, 3
        laid = torch.zeros(len(ids), channels, height, width)
        for place, id in enumerate(ids):
            if id >= N_SPECIAL:
                number, source = divmod(id - N_SPECIAL, _STRIDE)
                laid[place] = self._patches(self._images.tensor(number))[source]
        whole = laid.view(self.image.rows, self.image.columns, channels, height, width).permute(2, 0, 3, 1, 4)
        canvas = torch.zeros(channels, *self.image.preprocessing.shape)
        canvas[:, : self.image.rows * height, : self.image.columns * width] = whole.reshape(
            channels, self.image.rows * height, self.image.columns * width
        )
        return canvas

    def _patches(self, pixels: Tensor) -> Tensor:
        """Cut [channel, row, column] into [patch, channel, row, column]."""
        (height, width), rows, columns = self.image.patch, self.image.rows, self.image.columns
        cut = pixels[:, : rows * height, : columns * width].unfold(1, height, height).unfold(2, width, width)
        return cut.permute(1, 2, 0, 3, 4).reshape(rows * columns, -1, height, width)


def _hexadecimal(colour: Sequence[float]) -> str:
    return "#{:02x}{:02x}{:02x}".format(*(round(255 * share) for share in colour))
