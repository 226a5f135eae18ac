"""Removal of the current folder from Python's module search path.

A user who opens a downloaded model may be in its folder, and a file ``json.py`` there would run instead of Python's own
module. This module imports only what Python has loaded before it searches any folder.
"""

import os
import sys


def drop_current_folder() -> None:
    """Remove the current folder from ``sys.path``, unless this library itself was found there.

    ``python -m`` puts the current folder first, and so does an empty or a relative entry of ``PYTHONPATH``. Call this
    before any other import: a module that is already loaded cannot be replaced.
    """
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:  # the folder was deleted
        return
    library = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    if here == library:
        return
    if sys.path and os.path.realpath(sys.path[0]) == here:
        del sys.path[0]
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    relative = {os.path.realpath(entry) for entry in entries if not os.path.isabs(entry)}
    kept = {os.path.dirname(os.path.realpath(os.__file__)), library}
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) not in relative - kept]


def absolute_entries(search_path: str) -> list[str]:
    """Return the absolute entries of a value of ``PYTHONPATH``; an empty entry means the current folder."""
    return [entry for entry in search_path.split(os.pathsep) if os.path.isabs(entry)]
