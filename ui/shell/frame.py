"""Per-page setup in the browser: document language, keyboard access to the figure, lesson scrolling.

It also passes what a figure shows to exported files.
"""

from collections.abc import Mapping
from pathlib import Path

import streamlit as st

from charts.canvas.module import loader_script, packed_module, packed_pdf_writer
from ui.shell.events import component, nothing
from ui.shell.fragments import fragment
from ui.shell.guidance.lessons import Step
from ui.shell.navigation import page_names
from ui.words.texts import common, language

VIEW = "what is shown"  # key in the session

_component = component("frame", Path(__file__).with_suffix(".js"))


_canvas = st.components.v2.component("glassformer_canvas_script", js=loader_script())
_pdf_writer = st.components.v2.component("glassformer_pdf_writer", js=loader_script())


def bring_canvas() -> None:
    """Load the script of the figures, on every page that may have one.

    Streamlit sends the bytes once, some 38 KB or a dozen figures, and later only their name.
    """
    _canvas(key="canvas script", data=packed_module())


@fragment  # loading the PDF writer does not run the page again
def frame(*, place: str, step: Step | None, presents: bool, view: Mapping[str, str]) -> None:
    """Set up the frame of a page.

    Args:
        place: Identifies the current step of a lesson, if any; each new step scrolls to its figure.
        step: The step. Its figure is the part with the key ``step.figure``, together with the page's first figure if
            that is below it; otherwise the first figure alone; and the controls that it highlights.
        presents: Whether Page Up and Page Down, which a presenter's remote sends, turn pages and steps.
        view: The ``checkpoint``, its ``fingerprint`` and, on a page about a sentence, that and its ``target``.
    """
    st.session_state[VIEW] = view
    data = {"language": language(), "skip": common("page.skip"), "step": place, "presents": presents, "view": view}
    data |= {
        "others": common("page.others"),
        "figure": step.figure.replace(" ", "-") if step else "",
        "lights": [name.replace(" ", "-") for name in step.lights] if step else [],
        "pages": page_names(),
    }
    if _component(key="frame", data=data, on_pdf_change=nothing).get("pdf"):
        _pdf_writer(key="pdf writer", data=packed_pdf_writer())
