"""What this server allows. One that is open to everybody (``GLASSFORMER_PUBLIC=1``) takes no files and no paths, and
has narrower limits; docs/settings.md lists them. No Streamlit here."""

import os
import re
from dataclasses import dataclass

from ui.server.settings import settings

UNLIMITED = 10**9
# All of a path but its last name.
_FOLDERS = re.compile(r"(?<![\w./:])(?:[A-Za-z]:)?(?:[\\/][^\\/\s:;,'\"<>|]+)+(?=[\\/])")


@dataclass(frozen=True)
class Limits:
    """``jobs``: long computations at once, of which ``trainings`` may be live trainings; ``characters`` of one text;
    ``sentences`` of one's own over which something is measured; ``sessions``: visitors at once; ``idle_minutes``
    without a click, and a visitor's seat is for who waits; ``recording_mb``: megabytes that one recorded pass may
    take; ``uploads_mb``: megabytes of sent files that are held at a time, and as many of kept checkpoints on disk."""

    jobs: int
    trainings: int
    characters: int
    sessions: int
    idle_minutes: int = 20
    sentences: int = 200
    recording_mb: int = 2000
    uploads_mb: int = 400

    @property
    def visitor_uploads_mb(self) -> int:
        """Megabytes of sent files that are held for one visitor: two checkpoints of the largest size."""
        return min(200, self.uploads_mb)


PRIVATE = Limits(jobs=2, trainings=2, characters=40_000, sessions=UNLIMITED, sentences=1_000)
PUBLIC = Limits(jobs=1, trainings=1, characters=1_000, sessions=60, recording_mb=500)


def public() -> bool:
    """Whether everybody can reach this server. Any value but 0 says so: a typing error must not open what is closed."""
    return os.environ.get("GLASSFORMER_PUBLIC", "").strip() not in ("", "0")  # also where another setting is wrong


def limits() -> Limits:
    """By the environment; what it does not say depends on ``public()``."""
    said, usual = settings(), PUBLIC if public() else PRIVATE
    jobs = said.jobs or usual.jobs
    return Limits(
        jobs=jobs,
        trainings=min(usual.trainings, jobs) if public() else jobs,
        characters=said.characters or usual.characters,
        sessions=said.sessions or usual.sessions,
        idle_minutes=said.idle_minutes or usual.idle_minutes,
        sentences=said.sentences or usual.sentences,
        recording_mb=said.recording_mb or usual.recording_mb,
        uploads_mb=said.uploads_mb or usual.uploads_mb,
    )


LOOPBACK = ("localhost", "127.0.0.1", "::1")


def hosts(address: str | None) -> list[str]:
    """The names under which a server that listens on ``address`` is reached; empty: any. A server for this machine only
    has this machine's names, or a stranger's page whose name leads here could talk to it. A public server has nothing
    that a stranger could not have anyway."""
    named = [host.strip("[]") for host in settings().hosts]
    if named:
        return [*named, *LOOPBACK]  # health checks come from this machine
    return [*LOOPBACK] if address in LOOPBACK and not public() else []


def without_folders(text: str) -> str:
    """What an error says, on a public server without the folders that the server's files lie in: their names stay."""
    if not public():
        return text
    for folder in filter(None, os.environ.get("GLASSFORMER_CHECKPOINTS", "").split(os.pathsep)):
        text = text.replace(folder.rstrip("/\\"), "…")  # its name may have a space
    return _FOLDERS.sub("…", text)
