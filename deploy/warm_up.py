"""Warm-up: pages are opened in the server's own process before the first visitor comes.

A new server has loaded neither torch nor the model, and has traced no sentence: its first visitor would wait for
seconds. So before the server responds, the pages that a class opens first run once, for a simulated browser. What they
load is shared by all sessions (``ui/compute/loading.py``).
"""

import asyncio
import gc
import logging
import time
from collections.abc import Sequence

from ui.server.streamlit_private import BackMsg, ForwardMsg, Runtime, SessionClient

FIRST_PAGES = ("", "attention")  # as in the address; "" is the page that the app opens with
PATIENCE = 120.0  # time that a page may take
_LOG = logging.getLogger("uvicorn.error")


class WarmUpClient(SessionClient):
    """Client of a session that records when a run of the page ends, and its errors."""

    def __init__(self) -> None:
        self.finished = asyncio.Event()
        self.problems: list[str] = []

    def write_forward_msg(self, msg: ForwardMsg) -> None:
        """Record the end of a run, or an exception."""
        kind = msg.WhichOneof("type")
        if kind == "delta" and msg.delta.new_element.WhichOneof("type") == "exception":
            self.problems.append(msg.delta.new_element.exception.message)
        elif kind == "script_finished" and msg.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
            self.finished.set()

    @property
    def client_context(self) -> None:
        """No browser context."""
        return None


async def warm_up(pages: Sequence[str] = FIRST_PAGES) -> None:
    """Run ``pages`` once, one after the other; a page that fails is logged, and the server starts anyway.

    Call it on the server's event loop, after the runtime has started.
    """
    start = time.perf_counter()
    for page in pages:
        problems = await visit(page)
        for problem in problems:
            _LOG.warning("warming up, the page /%s said: %s", page, problem)
    # What is loaded by now stays: the garbage collector need not scan it again while students wait.
    gc.collect()
    gc.freeze()
    _LOG.info("warm after %.1f s", time.perf_counter() - start)


async def visit(page: str) -> list[str]:
    """Open one page as a new browser would and close it again; return its errors."""
    runtime, client = Runtime.instance(), WarmUpClient()
    session = runtime.connect_session(client=client, user_info={})
    message = BackMsg()
    message.rerun_script.page_name = page
    message.rerun_script.query_string = ""
    try:
        runtime.handle_backmsg(session, message)
        await asyncio.wait_for(client.finished.wait(), timeout=PATIENCE)
    except TimeoutError:
        client.problems.append(f"it was not ready after {PATIENCE:.0f} s")
    finally:
        runtime.close_session(session)
    return client.problems
