"""The address at which students reach this app, for links and QR codes on paper and on the desk."""

import re
import socket
from urllib.parse import urlsplit

import streamlit as st

from ui.server.settings import LOOPBACK
from ui.shell.navigation import page_names
from ui.words.texts import PageText, as_plain

_TYPED = "class address"
_EVERY_INTERFACE = ("", "0.0.0.0", "::")
_FAR_AWAY = ("192.0.2.1", 9)  # a reserved address (RFC 5737); nothing is sent to it


def ask_for_address(text: PageText) -> None:
    """Ask for the address if the browser's own is one that only this machine can open."""
    own = own_address()
    if not is_local(own):
        return
    usual = network_address(own, listens_on=st.get_option("server.address"))
    typed = st.text_input(text["address"], value=usual, key=_TYPED, help=text["address_help"], width=480)
    if typed.strip() and not _is_address(typed):
        st.warning(
            text["address_wrong"].format(typed=as_plain(typed), usual=as_plain(usual)), icon=":material/link_off:"
        )
    elif is_local(typed):
        st.caption(text["address_local"])


def address_for_class() -> str:
    """Return the address at which students reach the app, without a page; "" if it is unknown (tests)."""
    typed = st.session_state.get(_TYPED, "")
    if _is_address(typed):
        return typed.strip().rstrip("/")
    return network_address(own_address(), listens_on=st.get_option("server.address"))


def own_address() -> str:
    """Return the address of the app in this browser, without a page."""
    url = (st.context.url or "").partition("?")[0].rstrip("/")
    before, _, name = url.rpartition("/")
    return before if name in page_names() else url


def _is_address(typed: str) -> bool:
    return bool(re.fullmatch(r"https?://[^\s/?#]+(/[^\s?#]*)?", typed.strip()))


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
