"""Return of freed memory to the system. No Streamlit here."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock

_ARENA_MAX, _MMAP_THRESHOLD, _TOP_PAD, _TRIM_THRESHOLD = -8, -3, -2, -1  # constants of glibc's malloc.h
# Blocks of 2 MB are outside of the heaps, and each heap keeps 32 MB at its end.
_LIMITS = {_MMAP_THRESHOLD: 2 << 20, _TRIM_THRESHOLD: 32 << 20, _TOP_PAD: 128 << 10}
_LIMITS_OF_A_LONG_TEXT = {_MMAP_THRESHOLD: 32 << 20, _TRIM_THRESHOLD: 256 << 20, _TOP_PAD: 64 << 20}
_lock = Lock()
_is_limited, _long_texts = False, 0


@lru_cache(maxsize=1)
def give_back_what_is_freed() -> None:
    """Limit glibc to two heaps, with large blocks outside; call it before there are many threads.

    By default glibc creates a heap for each of many threads and puts blocks of up to 32 MB into it. Memory freed there,
    between blocks that stay, is kept by the process: with a class, this doubles the memory in use. glibc's own
    variables (``MALLOC_…``) take precedence.

    The next pass of a model reuses the free memory that a heap keeps at its end. With glibc's default of 128 KB, the
    kernel clears new pages for each pass, which takes up to a fifth of its time.
    """
    global _is_limited
    if not sys.platform.startswith("linux") or any(name.startswith("MALLOC_") for name in os.environ):
        return
    if (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:  # other libraries lack it
        for name, value in {_ARENA_MAX: 2, **_LIMITS}.items():
            mallopt(name, value)
        _is_limited = True


def give_back_holes() -> None:
    """Return free pages between blocks that stay, which glibc keeps; a few milliseconds for each 100 MB."""
    if _is_limited:
        ctypes.CDLL(None).malloc_trim(0)


@contextmanager
def reuse_freed_memory() -> Iterator[None]:
    """Keep what is freed for the next layer of a long text; return it to the system at the end.

    Each layer of a long text allocates a dozen tensors of 5 to 13 MB and frees them. If they are returned to the system
    at once, the kernel clears new pages for each, which takes a sixth of the time of a pass.
    """
    if not _is_limited:
        yield  # glibc adapts its limits by itself
        return
    _change_limits(+1)
    try:
        yield
    finally:
        _change_limits(-1)


def _change_limits(texts: int) -> None:
    """Count the long texts that are being read, and set the limits for them."""
    global _long_texts
    libc = ctypes.CDLL(None)
    with _lock:
        _long_texts += texts
        for name, value in (_LIMITS_OF_A_LONG_TEXT if _long_texts else _LIMITS).items():
            libc.mallopt(name, value)
        if not _long_texts:
            libc.malloc_trim(0)
