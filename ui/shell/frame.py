"""What every page itself needs of the browser: the document's language, a way for the keyboard straight to the figure,
and, while a lesson runs, the figure in sight at each of its steps. It also says what a figure shows, for its files, and
tells the page around the app, if there is one, the address of the view."""

from collections.abc import Mapping
from pathlib import Path

import streamlit as st

from charts.canvas.module import carrier, packed_module, packed_pdf_writer, pdf_carrier
from ui.shell.embedded import embedded
from ui.shell.events import component
from ui.shell.focus import whole_address
from ui.shell.fragments import fragment
from ui.shell.guidance.lessons import Step
from ui.shell.navigation import page_names
from ui.shell.outer_page import PAGE, outer_origin, seen_address
from ui.shell.share import link
from ui.words.texts import common, language

VIEW = "what is shown"  # in the session

_component = component("frame", Path(__file__).with_suffix(".js"))


_canvas = st.components.v2.component("glassformer_canvas_script", js=carrier())
_pdf_writer = st.components.v2.component("glassformer_pdf_writer", js=pdf_carrier())


def bring_canvas() -> None:
    """Once on every page that may have a picture: what draws it. Streamlit sends the bytes once, and from then on only
    their name; they are some 38 KB, as much as a dozen pictures."""
    _canvas(key="canvas script", data=packed_module())


@fragment  # to bring what writes PDF does not run the page again
def frame(*, place: str, step: Step | None, view: Mapping[str, str]) -> None:
    """Once on every page. ``place`` names the lesson's ``step`` that is shown, if any: each brings its figure in
    sight: what has the key ``step.figure``, and the page's first figure if that stands below it; else that figure
    alone; and the controls that it lights up.

    ``view``: the ``checkpoint``, its ``fingerprint`` and, on a page about a sentence, that and its ``target``.
    """
    st.session_state[VIEW] = view
    data = {"language": language(), "skip": common("page.skip"), "step": place, "view": view}
    data |= {
        "others": common("page.others"),
        "figure": step.figure.replace(" ", "-") if step else "",
        "lights": [name.replace(" ", "-") for name in step.lights] if step else [],
        "embedded": embedded(),
        "pages": page_names(),
        "outer": {"origin": outer_origin(), "page": PAGE},
    }
    if _component(key="frame", data=data, on_pdf_change=_nothing).get("pdf"):
        _pdf_writer(key="pdf writer", data=packed_pdf_writer())


def _nothing() -> None:
    """Streamlit reports an event only if it has a callback; the returned value is all that is needed."""


def provenance(title: str) -> dict[str, str]:
    """What a file that the server makes says of itself; ``charts/canvas/source/frame/provenance.js`` does it for those
    that the browser makes."""
    view = st.session_state.get(VIEW)
    if not view:
        return {"title": title, "software": "Glassformer"}
    own = {name: view[name] for name in ("checkpoint", "fingerprint")}
    view_link = link(*seen_address(st.context.url or "", whole_address()), **own)
    said = {"title": title, **view, "view": view_link, "software": "Glassformer"}
    return {name: text for name, text in said.items() if text}
