"""What this server allows. One that is open to everybody (``GLASSFORMER_PUBLIC=1``) takes no files and no paths, and
has narrower limits; docs/settings.md lists them. No Streamlit here."""

import os
import re
from dataclasses import dataclass

UNLIMITED = 10**9
# All of a path but its last name.
_FOLDERS = re.compile(r"(?<![\w./:])(?:[A-Za-z]:)?(?:[\\/][^\\/\s:;,'\"<>|]+)+(?=[\\/])")


@dataclass(frozen=True)
class Limits:
    """``jobs``: long computations at once, of which ``trainings`` may be live trainings; ``characters`` of one text;
    ``sentences`` of one's own over which something is measured; ``sessions``: visitors at once; ``idle_minutes``
    without a click, and a visitor's seat is for who waits; ``recording_mb``: megabytes that one recorded pass may
    take."""

    jobs: int
    trainings: int
    characters: int
    sessions: int
    idle_minutes: int = 20
    sentences: int = 200
    recording_mb: int = 2000


PRIVATE = Limits(jobs=2, trainings=2, characters=40_000, sessions=UNLIMITED)
PUBLIC = Limits(jobs=1, trainings=1, characters=1_000, sessions=60, recording_mb=500)


def public() -> bool:
    """Whether everybody can reach this server. Any value but 0 says so: a typing error must not open what is closed."""
    return os.environ.get("GLASSFORMER_PUBLIC", "").strip() not in ("", "0")


def limits() -> Limits:
    """By the environment; what it does not say depends on ``public()``."""
    usual = PUBLIC if public() else PRIVATE
    jobs = _number("JOBS", usual.jobs)
    return Limits(
        jobs=jobs,
        trainings=min(usual.trainings, jobs) if public() else jobs,
        characters=_number("CHARACTERS", usual.characters),
        sessions=_number("SESSIONS", usual.sessions),
        idle_minutes=_number("IDLE_MINUTES", usual.idle_minutes),
        sentences=_number("SENTENCES", usual.sentences),
        recording_mb=_number("RECORDING_MB", usual.recording_mb),
    )


def without_folders(text: str) -> str:
    """What an error says, on a public server without the folders that the server's files lie in: their names stay."""
    if not public():
        return text
    for folder in filter(None, os.environ.get("GLASSFORMER_CHECKPOINTS", "").split(os.pathsep)):
        text = text.replace(folder.rstrip("/\\"), "…")  # its name may have a space
    return _FOLDERS.sub("…", text)


def _number(name: str, usual: int) -> int:
    """Raises ``ValueError`` for what is no whole number from 1."""
    said = os.environ.get(f"GLASSFORMER_{name}", "").strip()
    if said and not (said.isascii() and said.isdigit() and int(said)):
        raise ValueError(f"GLASSFORMER_{name} is {said!r}; it must be an integer ≥ 1, or be left out")
    return int(said or usual)
