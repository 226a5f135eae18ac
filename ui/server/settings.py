"""Settings from the environment, read and checked once at the start. No Streamlit here.

An invalid setting stops the server with a one-sentence message, instead of breaking every visitor's page.
docs/settings.md explains the settings.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib.util import find_spec

PREFIX = "GLASSFORMER_"
_HOST = re.compile(r"(\*\.)?[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?|\[?[0-9A-Fa-f:.]+\]?|\*")
_LARGEST = 10**9
_SHORTEST_SECRET = 12  # characters


class SettingError(ValueError):
    """An invalid setting; the message names it, its value and what would be valid."""


@dataclass(frozen=True)
class Settings:
    """All settings, named like the variables without prefix; ``None`` means the default."""

    checkpoints: str = ""
    public: bool = False
    threads: int | None = None
    models_mb: int | None = None
    traces_mb: int | None = None
    results_mb: int | None = None
    figures_mb: int | None = None
    jobs: int | None = None
    characters: int | None = None
    recording_mb: int | None = None
    uploads_mb: int | None = None
    sentences: int | None = None
    sessions: int | None = None
    idle_minutes: int | None = None
    web_page: str = ""
    hosts: tuple[str, ...] = ()
    instructor: str = field(default="", repr=False)
    redis: str = field(default="", repr=False)  # it may contain a password


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
    return Settings(**values)


def stop_if_wrong() -> None:
    """Exit with an error message before anything is loaded or served."""
    try:
        settings()
    except SettingError as error:
        raise SystemExit(f"Glassformer was not started: {error}.") from None


def _number(name: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and 1 <= len(value) <= 10 and 0 < int(value) <= _LARGEST):
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
