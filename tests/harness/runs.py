"""Messages from the server after one action of a visitor."""

import time
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field

from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg


@dataclass
class Run:
    """Result of one action of the visitor, including ``st.rerun`` and the like.

    Attributes:
        seconds: Time from sending until the script had finished.
        received: Every message as the page would see it (large ones that the page has already are included in full).
        n_bytes: Bytes on the wire.
        problem: Why the action was impossible.
    """

    seconds: float = 0.0
    received: list[ForwardMsg] = field(default_factory=list)
    n_bytes: int = 0
    problem: str = ""

    @property
    def errors(self) -> list[str]:
        """Return the errors that the page showed, its exceptions, and the ``problem``."""
        shown = [text for message in self.received for text in _errors(message)]
        return [*shown, self.problem] if self.problem else shown


async def attempt(action: Awaitable[Run]) -> Run:
    """Return the result of an action; an exception becomes its ``problem``."""
    start = time.perf_counter()
    try:
        return await action
    except Exception as error:
        return Run(seconds=time.perf_counter() - start, problem=f"{type(error).__name__}: {error}")


def _errors(message: ForwardMsg) -> Iterator[str]:
    if message.WhichOneof("type") == "session_event":
        if message.session_event.WhichOneof("type") == "script_compilation_exception":
            yield message.session_event.script_compilation_exception.message
    elif message.WhichOneof("type") == "delta" and message.delta.WhichOneof("type") == "new_element":
        element = message.delta.new_element
        if element.WhichOneof("type") == "exception":
            yield f"{element.exception.type}: {element.exception.message}"
        elif element.WhichOneof("type") == "alert" and element.alert.format == Alert.ERROR:
            yield element.alert.body
