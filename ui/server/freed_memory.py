"""Return of freed memory to the system. No Streamlit here."""

import ctypes
import os
import sys
from functools import lru_cache

_ARENA_MAX, _MMAP_THRESHOLD, _TRIM_THRESHOLD = -8, -3, -1  # constants of glibc's malloc.h
KEPT = 32  # megabytes at the end of each heap


@lru_cache(maxsize=1)
def give_back_what_is_freed(kept: int = KEPT) -> None:
    """Limit glibc to two heaps, with large blocks outside; call it before there are many threads.

    By default glibc creates a heap for each of many threads and puts blocks of up to 32 MB into it. Memory freed there,
    between blocks that stay, is kept by the process: with a class, this doubles the memory in use. glibc's own
    variables (``MALLOC_…``) take precedence.

    Each heap keeps ``kept`` megabytes at its end, which the next pass of a model uses again. With glibc's 128 KB, the
    kernel clears new pages for each pass, which takes up to a fifth of its time.
    """
    if not sys.platform.startswith("linux") or any(name.startswith("MALLOC_") for name in os.environ):
        return
    if (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:  # other libraries lack it
        mallopt(_ARENA_MAX, 2)
        mallopt(_MMAP_THRESHOLD, 2 << 20)
        mallopt(_TRIM_THRESHOLD, kept << 20)
