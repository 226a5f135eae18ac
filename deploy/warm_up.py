"""The first visitor, before anybody comes: opens pages in the server's own process and throws them away.

A new server has loaded neither torch nor the model, and has traced no sentence: its first visitor waits for seconds. So
before the server answers, the pages that a class opens first run once, for a browser that does not exist. What they
load stays where all sessions share it (``ui/compute/loading.py``).
"""

import asyncio
import gc
import logging
import time
from collections.abc import Sequence

from ui.server.streamlit_private import BackMsg, ForwardMsg, Runtime, SessionClient

FIRST_PAGES = ("", "attention")  # as they stand in the address; "" is the one that the app opens with
PATIENCE = 120.0  # seconds a page may take
_LOG = logging.getLogger("uvicorn.error")


class WarmUpClient(SessionClient):
    """The end of a session's line: hears when a run of the page is over, and what went wrong in it."""

    def __init__(self) -> None:
        self.finished = asyncio.Event()
        self.problems: list[str] = []

    def write_forward_msg(self, msg: ForwardMsg) -> None:
        kind = msg.WhichOneof("type")
        if kind == "delta" and msg.delta.new_element.WhichOneof("type") == "exception":
            self.problems.append(msg.delta.new_element.exception.message)
        elif kind == "script_finished" and msg.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
            self.finished.set()

    @property
    def client_context(self) -> None:
        return None


async def warm_up(pages: Sequence[str] = FIRST_PAGES) -> None:
    """Run ``pages`` once, one after the other. A page that fails is named in the log; the server starts all the same.

    Must run on the server's event loop, when the runtime has started.
    """
    start = time.perf_counter()
    for page in pages:
        problems = await visit(page)
        for problem in problems:
            _LOG.warning("warming up, the page /%s said: %s", page, problem)
    # What is loaded by now stays: the collector need not look through it again and again while students wait.
    gc.collect()
    gc.freeze()
    _LOG.info("warm after %.1f s", time.perf_counter() - start)


async def visit(page: str) -> list[str]:
    """Open one page as a new browser does and close it again; returns what went wrong."""
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
