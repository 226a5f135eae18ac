"""Files from a reader, kept in memory; the least recently used ones are dropped."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock


class KeptFiles:
    """A cache of file contents by name, limited to ``most`` bytes and shared by all threads."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._files: OrderedDict[str, bytes] = OrderedDict()
        self._lock = Lock()

    def keep(self, name: str, data: bytes) -> None:
        """Keep a file; the least recently used ones are dropped, but never this one."""
        with self._lock:
            self._files[name] = data
            self._files.move_to_end(name)
            while sum(map(len, self._files.values())) > self.most and len(self._files) > 1:
                self._files.popitem(last=False)

    def get(self, name: str) -> bytes | None:
        """Return a kept file, which counts as a use, or ``None``."""
        with self._lock:
            if name in self._files:
                self._files.move_to_end(name)
            return self._files.get(name)

    def clear(self) -> None:
        """Drop all files."""
        with self._lock:
            self._files.clear()

    def __contains__(self, name: object) -> bool:
        return name in self._files
