"""Settings from the environment, read and checked once at the start. No Streamlit here.

An invalid setting stops the server with a one-sentence message, instead of breaking every visitor's page. A public
server (``GLASSFORMER_PUBLIC=1``) accepts no files and no paths, and has lower limits. docs/settings.md explains the
settings.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib.util import find_spec

PREFIX = "GLASSFORMER_"
UNLIMITED = 10**9
LOOPBACK = ("localhost", "127.0.0.1", "::1")
# Matches the folders of a path.
_FOLDERS = re.compile(r"(?<![\w./:])(?:[A-Za-z]:)?(?:[\\/][^\\/\s:;,'\"<>|]+)+(?=[\\/])")
_HOST = re.compile(r"(\*\.)?[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?|\[?[0-9A-Fa-f:.]+\]?|\*")
_SHORTEST_SECRET = 12  # characters


class SettingError(ValueError):
    """An invalid setting; the message names it, its value and what would be valid."""


@dataclass(frozen=True)
class Settings:
    """All settings, named like the variables without prefix, with defaults for a private server.

    Attributes:
        threads: Threads for one forward pass.
        models_mb: Megabytes of opened checkpoints: all of ours; ``en-fr`` takes 28, an upload at most 100.
        traces_mb: Megabytes of whatever holds a trace; one sentence each for a class of fifty, and 30 ms to make again.
        results_mb: Megabytes of other results.
        figures_mb: Megabytes of figures that an open page can still save as a file or show as a table; each takes 2 to
            100 KB.
        jobs: Number of long computations at a time, including live training runs.
        characters: Length of a text.
        sentences: Maximum number of a user's own sentences in a measurement.
        sessions: Number of visitors at a time.
        idle_minutes: Time without a click after which a visitor's seat goes to someone who is waiting.
        recording_mb: Megabytes that one recorded pass may take.
        uploads_mb: Limit in megabytes for uploaded files in memory, and for stored checkpoints on disk.
        redis: Address of a Redis; it may contain a password.
    """

    checkpoints: str = ""
    public: bool = False
    threads: int = 1
    models_mb: int = 256
    traces_mb: int = 128
    results_mb: int = 64
    figures_mb: int = 16
    jobs: int = 2
    characters: int = 40_000
    sentences: int = 1_000
    sessions: int = UNLIMITED
    idle_minutes: int = 20
    recording_mb: int = 2000
    uploads_mb: int = 400
    web_page: str = ""
    hosts: tuple[str, ...] = ()
    instructor: str = field(default="", repr=False)
    redis: str = field(default="", repr=False)

    @property
    def visitor_uploads_mb(self) -> int:
        """Megabytes of uploaded files held for one visitor: two checkpoints of the largest size."""
        return min(200, self.uploads_mb)


PUBLIC = {"jobs": 1, "characters": 1_000, "sentences": 200, "sessions": 60, "recording_mb": 500}  # other defaults


def settings(environment: Mapping[str, str] | None = None) -> Settings:
    """Return the settings of the environment.

    Raises:
        SettingError: For the first invalid setting.
    """
    environment = os.environ if environment is None else environment
    values = {}
    for one in fields(Settings):
        name = PREFIX + one.name.upper()
        value = environment.get(name, "").strip()
        if value:
            values[one.name] = _READERS.get(one.name, _number)(name, value)
    return Settings(**(PUBLIC if values.get("public") else {}) | values)


def stop_if_wrong() -> None:
    """Exit with an error message before anything is loaded or served."""
    try:
        settings()
    except SettingError as error:
        raise SystemExit(f"Glassformer was not started: {error}.") from None


def public() -> bool:
    """Return whether everybody can reach this server.

    Any value but 0 means yes, so that a typing error does not make a server less strict.
    """
    return os.environ.get("GLASSFORMER_PUBLIC", "").strip() not in ("", "0")  # needed even if another setting is wrong


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


def _number(name: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and 1 <= len(value) <= 10 and 0 < int(value) <= UNLIMITED):
        raise SettingError(f"{name} is {value[:40]!r}; it must be an integer ≥ 1, or be left out")
    return int(value)


def _truth(_: str, value: str) -> bool:
    """Return true for any value but 0, so that a typing error does not make a server less strict."""
    return value != "0"


def _address(name: str, value: str) -> str:
    if not re.fullmatch(r"https?://[^\s/]+(/\S*)?", value):
        raise SettingError(f"{name} is {value[:200]!r}; it must be an address with http:// or https://")
    return value


def _hosts(name: str, value: str) -> tuple[str, ...]:
    hosts = tuple(part.strip() for part in value.split(",") if part.strip())
    if wrong := [host for host in hosts if not _HOST.fullmatch(host)]:
        raise SettingError(
            f"{name} names {wrong[0][:80]!r}; it must be names such as glassformer.example.org, with commas between "
            "them, without http:// and without ports"
        )
    return hosts


def _text(_: str, value: str) -> str:
    return value


def _secret(name: str, value: str) -> str:
    if not _SHORTEST_SECRET <= len(value) <= 200:
        raise SettingError(f"{name} has {len(value)} characters; it must have {_SHORTEST_SECRET} to 200")
    return value


def _redis(name: str, value: str) -> str:
    if not re.fullmatch(r"(rediss?|unix)://\S+", value):
        raise SettingError(f"{name} must be an address with redis://, rediss:// or unix://")
    if find_spec("redis") is None:
        raise SettingError(f"{name} is set, but the package redis is missing: pip install redis")
    return value


_READERS = {
    "checkpoints": _text,
    "public": _truth,
    "web_page": _address,
    "hosts": _hosts,
    "instructor": _secret,
    "redis": _redis,
}
