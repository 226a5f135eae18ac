"""A link to exactly this view, with the checkpoint's fingerprint and an optional note.

The address in the browser leaves out defaults; such a link contains everything, so that it shows the same view, or
states the difference, on a server with other defaults.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

import streamlit as st

from transformer import Checkpoint
from transformer.files.layout import is_same_fingerprint, shown_fingerprints
from ui.server.settings import settings
from ui.shell import address
from ui.shell.events import component
from ui.shell.focus import CAME_FROM, CLASS, FINGERPRINT, NOTE, address_of, current
from ui.shell.fragments import fragment
from ui.words.texts import as_plain, common

BUTTON = "share"
LONGEST_NOTE = 500
# Streamlit's own icon in a code block needs a mouse.
_copy_button = component("copying", Path(__file__).with_name("copying.js"))


def link(
    page_url: str, parameters: Mapping[str, Sequence[str]], *, checkpoint: str, fingerprint: str, note: str = ""
) -> str:
    """Return ``page_url?checkpoint=…&fingerprint=…``, then the address's other parameters, then the note.

    It is for other people, so it omits the reader's view before a lesson, and the reader's class.
    """
    own = {"checkpoint": [checkpoint], FINGERPRINT: [fingerprint]}
    others = {name: values for name, values in parameters.items() if name not in (*own, NOTE, CAME_FROM, CLASS)}
    note_parameters = {NOTE: [note[:LONGEST_NOTE]]} if note.strip() else {}
    return f"{page_url}?{urlencode({**own, **others, **note_parameters}, doseq=True)}"


# Besides these pages, the web page has the living picture, which it opens with (web/source/state.js).
ON_THE_WEB = ("tokens", "attention", "heads", "decoding")


def web_link(web_page: str, shown_link: str) -> str:
    """Return the address of the same view on the web page, whose models run in the browser."""
    parts = urlsplit(shown_link)
    page = parts.path.rpartition("/")[2]
    view = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] not in (NOTE, FINGERPRINT)]
    return f"{web_page}?{urlencode([*([('page', page)] if page in ON_THE_WEB else []), *view])}"


@fragment
def share(checkpoint: str, fingerprint: str) -> None:
    """Draw a button that opens the link, ready to be copied, with a box for a note.

    The link is created only when the button is opened.

    Args:
        checkpoint: Name of the checkpoint.
        fingerprint: Fingerprint of its weights.
    """
    button = st.popover(common("share.button"), icon=":material/share:", type="tertiary", key=BUTTON, on_change="rerun")
    if not button.open:
        return
    with button:
        note = st.text_area(
            common("share.note"), key="share note", height=80, max_chars=LONGEST_NOTE, help=common("share.note_help")
        )
        view = {name: [value] for name, value in address_of(current(), whole=True).items()}
        found = view | address.parameters()
        shown_link = link(
            st.context.url or "",
            found,
            checkpoint=checkpoint,
            fingerprint=fingerprint,
            note=note,
        )
        st.code(shown_link, language=None, wrap_lines=True)
        said = {"label": common("share.copy"), "done": common("share.copied")}
        _copy_button(key="copy link", data={"text": shown_link, **said})
        st.caption(common("share.caption"))
        if web_page := settings().web_page:
            st.link_button(common("share.web"), web_link(web_page, shown_link), icon=":material/public:")


def show_what_a_link_says(checkpoint: Checkpoint) -> None:
    """Show the instructor's note as plain text, and a line if the weights differ from those of the link."""
    if note := address.value(NOTE).strip():
        shown = note if len(note) <= LONGEST_NOTE else f"{note[:LONGEST_NOTE]} … {common('share.note_cut')}"
        st.info("  \n".join(map(as_plain, shown.splitlines())), icon=":material/sticky_note_2:")
    wanted = address.value(FINGERPRINT)
    if wanted and not is_same_fingerprint(wanted, checkpoint.fingerprint):
        name, (requested, found) = as_plain(checkpoint.name), shown_fingerprints(wanted[:64], checkpoint.fingerprint)
        st.caption(
            f":material/info: {common('share.other_weights', name=name, wanted=as_plain(requested), found=found)}"
        )
