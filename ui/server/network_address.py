"""The address at which other machines reach this server. No Streamlit here."""

import socket
from urllib.parse import urlsplit

from ui.server.limits import LOOPBACK

_EVERY_INTERFACE = ("", "0.0.0.0", "::")
_FAR_AWAY = ("192.0.2.1", 9)  # a reserved address (RFC 5737); nothing is sent to it


def is_local(url: str) -> bool:
    """Return whether only this machine can open ``url``."""
    return (urlsplit(url).hostname or "") in LOOPBACK


def network_address(url: str, *, listens_on: str | None) -> str:
    """Return ``url`` as other machines reach it, or unchanged if that is unknown.

    Args:
        url: Address that a browser uses.
        listens_on: Address that the server listens on (``server.address``), ``None`` for all.
    """
    if not is_local(url) or (listens_on or "") not in _EVERY_INTERFACE:
        return url
    host = _own_host()
    parts = urlsplit(url)
    return parts._replace(netloc=f"{host}:{parts.port}" if parts.port else host).geturl() if host else url


def _own_host() -> str:
    """Return this machine's address in its network, "" without one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(_FAR_AWAY)  # selects a network interface
        except OSError:
            return ""
        return asking.getsockname()[0]
