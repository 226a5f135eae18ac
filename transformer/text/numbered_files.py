"""The images that a model has read: their numbers, and the tensors of the last few."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from torch import Tensor

MOST_BYTES = 64_000_000  # of the tensors that are kept, if there is more than one


class NumberedFiles:
    """Files by number, in the order in which they were first read, shared by all threads.

    A number never changes, so that ids that contain it keep their meaning; a tensor that was dropped is computed again.

    Args:
        read: Returns what a model reads of the file that a text names; raises ``InputError`` for any other text.
        most: Number of tensors that are kept, as long as they have at most ``MOST_BYTES``.
    """

    def __init__(self, read: Callable[[str], Tensor], *, most: int) -> None:
        self._read, self._most = read, most
        self._numbers: dict[str, int] = {}
        self._texts: list[str] = []
        self._tensors: OrderedDict[int, Tensor] = OrderedDict()
        self._lock = Lock()

    def __deepcopy__(self, _: dict[int, object]) -> NumberedFiles:
        """Return the same files: a copy of a model reads what the model has read, under the same numbers."""
        return self

    def number(self, text: str) -> int:
        """Return the number of a file, which is read if it is new; raises what ``read`` raises."""
        if self._numbers.get(text) not in self._tensors:
            tensor = self._read(text)
            with self._lock:
                if text not in self._numbers:
                    self._numbers[text] = len(self._texts)
                    self._texts.append(text)
                self._keep(self._numbers[text], tensor)
        return self._numbers[text]

    def text(self, number: int) -> str:
        """Return the text of a file by its number."""
        return self._texts[number]

    def tensor(self, number: int) -> Tensor:
        """Return what a model reads of a file; raises what ``read`` raises, also if no file has the number."""
        with self._lock:
            if (found := self._tensors.get(number)) is not None:
                self._tensors.move_to_end(number)
                return found
        tensor = self._read(self._texts[number] if 0 <= number < len(self._texts) else "")
        with self._lock:
            self._keep(number, tensor)
        return tensor

    def _keep(self, number: int, tensor: Tensor) -> None:
        self._tensors[number] = tensor
        self._tensors.move_to_end(number)
        while len(self._tensors) > self._most or (len(self._tensors) > 1 and self._n_bytes() > MOST_BYTES):
            self._tensors.popitem(last=False)

    def _n_bytes(self) -> int:
        return sum(tensor.nbytes for tensor in self._tensors.values())
