"""The process that runs third-party tokenizers, so that no file can harm the app through them.

One process imports the libraries once (``nursery``) and forks for every tokenizer, which takes milliseconds and
shares the imported memory. Each child serves requests, one JSON object per line, until its connection is closed. It
has a limit of memory for its lifetime and of processor time per request, cannot write a file, and reads no pickle
that names code. The libraries are configured not to use the network.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from transformer.text.guests.reader import open_reader

MAX_ANSWER = 2_000_000  # ids or characters of one answer
_NOT_NEEDED = ("torch", "tensorflow", "jax", "pandas", "scipy", "sklearn", "matplotlib", "PIL")


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Serve one tokenizer: the first request names the folder, the others a method of ``Reader``.

    Each request states its limit in ``seconds`` of processor time.
    """
    reader = None
    for line in requests:
        request = json.loads(line)
        _limit_time(request["seconds"])
        try:
            if reader is None:
                _limit_memory(request["gigabytes"])
                reader = open_reader(Path(request["folder"]))
                answer = {"found": reader.describe()}
            else:
                answer = _checked(getattr(reader, request["method"])(**request["given"]))
        except MemoryError:
            os._exit(1)
        except BaseException as error:  # a panic of the tokenizers library is not an Exception
            answer = {"problem": " ".join((str(error) or type(error).__name__).split())[:300]}
        _limit_time(0)
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def _checked(found: object) -> dict:
    """Return the reply for a result; a result too large for the receiver is replaced by a count."""
    sizes = (len(part) if isinstance(part, (list, str)) else 1 for part in found) if isinstance(found, list) else ()
    return {"too_many": MAX_ANSWER} if sum(sizes) > MAX_ANSWER else {"found": found}


def nursery(line: socket.socket) -> None:
    """Fork a child that serves each socket received through ``line``."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while found := socket.recv_fds(line, 1, 1)[1]:
        with socket.socket(fileno=found[0]) as own:
            if os.fork() == 0:
                line.close()
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # hides what the libraries print when they panic
                serve(own.makefile("rb"), own.makefile("wb"))
                os._exit(0)


def _limit_memory(gigabytes: float) -> None:
    with suppress(ImportError):  # Windows
        import resource

        most = int(gigabytes * 2**30)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        for name in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):
            resource.setrlimit(name, (0, 0))


def _limit_time(seconds: float) -> None:
    """Let the system end this process after ``seconds`` of processor time, even inside a library."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _import_libraries() -> None:
    """Import the libraries before the process forks; from then on, a pickle can only hold plain data."""
    for name in _NOT_NEEDED:
        sys.modules.setdefault(name, None)  # transformers finds it missing; importing torch takes seconds
    from transformers import AutoTokenizer  # noqa: F401

    sys.addaudithook(_refuse_code_in_pickles)


def _refuse_code_in_pickles(event: str, _: object) -> None:
    """Refuse a pickle that names a class or function; unpicklers raise an audit event before look-up."""
    if event == "pickle.find_class":
        raise ValueError("pickles are not read")


if __name__ == "__main__":
    _import_libraries()
    if hasattr(os, "fork"):
        nursery(socket.socket(fileno=sys.stdin.fileno()))
    else:
        serve(sys.stdin.buffer, sys.stdout.buffer)
