"""Parts of a page that run without the rest of it, with a rule for what they may keep.

A session keeps the arguments of its fragments, the callbacks of its widgets with their arguments, and
``st.session_state`` as long as its browser tab is open. So none of them may hold objects that all sessions share: a
checkpoint, a trace, a run, a decoding, a tensor, a large array. They hold names, and look up what they need when they
run:

    @fragment
    def beam_tree(p: Page) -> None:  # a Page is names only: p.checkpoint and p.trace come from the store
        with guard():
            ...

    st.button("Remove head", on_click=_remove, args=(p.focus.layer, p.focus.head))

If the store has dropped a checkpoint in the meantime, it is loaded again. Long computations belong in the store under
the run (``store.get(p.run, name, make)``) and are looked up by the fragment, too. ``tests/pages/conftest.py`` follows
all references of a session after each test of a page.

A fragment draws no toast and no ``st.html`` of style sheets only. Streamlit draws both in one list for the whole page
and, when a fragment runs alone, counts from where that list was when the page drew the fragment: they would replace
the style sheets that the page has added since. Style sheets are added outside, and a message is part of the fragment.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import streamlit as st

from transformer import Checkpoint, Decoding
from transformer.runs.run import Run
from transformer.runs.traces import Trace
from ui.words.once_a_run import within_a_run
from ui.words.texts import language, speak

_Arguments = ParamSpec("_Arguments")
_SHARED = (Checkpoint, Decoding, Run, Trace)


def fragment(draw: Callable[_Arguments, None], *, run_every: float | None = None) -> Callable[_Arguments, None]:
    """Draw a part of a page that its own widgets redraw without the rest of the page.

    Args:
        draw: Called with the arguments of the last run of the whole page, which the session keeps: plain values and
            ``Page`` only.
        run_every: Seconds after which the part is automatically redrawn.

    Raises:
        TypeError: If the part is called with a checkpoint, a trace, a run or a decoding.
    """

    @wraps(draw)
    def draw_alone(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> None:
        with within_a_run():
            speak(language())
            draw(*arguments, **named)

    registered = st.fragment(draw_alone, run_every=run_every)

    @wraps(draw)
    def register(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> None:
        for value in (*arguments, *named.values()):
            if isinstance(value, _SHARED):
                raise TypeError(
                    f"the fragment {draw.__qualname__} got a {type(value).__name__}, which every open tab would keep "
                    "in memory; give it names, and look it up in the fragment (ui/shell/fragments.py)"
                )
        registered(*arguments, **named)

    return register
