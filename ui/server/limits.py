"""Limits of this server. No Streamlit here.

A public server (``GLASSFORMER_PUBLIC=1``) accepts no files and no paths, and has lower limits; docs/settings.md lists
them.
"""

import os
import re
from dataclasses import asdict, dataclass

from ui.server.settings import settings

UNLIMITED = 10**9
# Matches the folders of a path.
_FOLDERS = re.compile(r"(?<![\w./:])(?:[A-Za-z]:)?(?:[\\/][^\\/\s:;,'\"<>|]+)+(?=[\\/])")


@dataclass(frozen=True)
class Limits:
    """Limits of a server.

    Attributes:
        jobs: Number of long computations at a time, including live training runs.
        characters: Length of a text.
        sentences: Maximum number of a user's own sentences in a measurement.
        sessions: Number of visitors at a time.
        idle_minutes: Time without a click after which a visitor's seat goes to someone who is waiting.
        recording_mb: Megabytes that one recorded pass may take.
        uploads_mb: Limit in megabytes for uploaded files in memory, and for stored checkpoints on disk.
    """

    jobs: int
    characters: int
    sessions: int
    idle_minutes: int = 20
    sentences: int = 200
    recording_mb: int = 2000
    uploads_mb: int = 400

    @property
    def visitor_uploads_mb(self) -> int:
        """Megabytes of uploaded files held for one visitor: two checkpoints of the largest size."""
        return min(200, self.uploads_mb)


PRIVATE = Limits(jobs=2, characters=40_000, sessions=UNLIMITED, sentences=1_000)
PUBLIC = Limits(jobs=1, characters=1_000, sessions=60, recording_mb=500)


def public() -> bool:
    """Return whether everybody can reach this server.

    Any value but 0 means yes, so that a typing error does not make a server less strict.
    """
    return os.environ.get("GLASSFORMER_PUBLIC", "").strip() not in ("", "0")  # needed even if another setting is wrong


def limits() -> Limits:
    """Return the limits set by the environment; defaults depend on ``public()``."""
    configured, usual = settings(), PUBLIC if public() else PRIVATE
    return Limits(**{name: getattr(configured, name) or value for name, value in asdict(usual).items()})


LOOPBACK = ("localhost", "127.0.0.1", "::1")


def hosts(address: str | None) -> list[str]:
    """Return the names under which a server that listens on ``address`` is reached; empty for any.

    A server for this machine only has this machine's names; otherwise a third-party page whose name resolves to it
    could send it requests. A public server needs no such protection.
    """
    named = [host.strip("[]") for host in settings().hosts]
    if named:
        return [*named, *LOOPBACK]  # health checks come from this machine itself
    return [*LOOPBACK] if address in LOOPBACK and not public() else []


def without_folders(text: str) -> str:
    """Return an error message; a public server removes the folders of its files from it."""
    if not public():
        return text
    for folder in filter(None, os.environ.get("GLASSFORMER_CHECKPOINTS", "").split(os.pathsep)):
        text = text.replace(folder.rstrip("/\\"), "…")  # the name of a folder may contain a space
    return _FOLDERS.sub("…", text)
