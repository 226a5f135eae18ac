"""What is freed goes back to the system. No Streamlit here."""

import ctypes
import os
import sys
from functools import lru_cache

_ARENA_MAX, _MMAP_THRESHOLD = -8, -3  # of glibc's malloc.h


@lru_cache(maxsize=1)
def give_back_what_is_freed() -> None:
    """Before there are many threads: from now on there are two heaps, and blocks of more than 2 MB lie apart.

    By itself glibc begins a heap for each of many threads and comes to take blocks of up to 32 MB from it. What is
    freed there, between what stays, is kept by the process: with a class, as much again as all that is in use. Who has
    set glibc's own variables (``MALLOC_…``) knows better.
    """
    if not sys.platform.startswith("linux") or any(name.startswith("MALLOC_") for name in os.environ):
        return
    if (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:  # other libraries have none
        mallopt(_ARENA_MAX, 2)
        mallopt(_MMAP_THRESHOLD, 2 << 20)
