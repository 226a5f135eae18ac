"""The process in which a tokenizer from elsewhere is read: whatever its files make the libraries do ends here.

One process imports the libraries once (``nursery``) and divides itself for every tokenizer: this takes milliseconds and
shares the memory of what was imported. Each child answers requests, one JSON object a line, until its line is closed.
It has limits of memory for all of its life and of processor time for each request, cannot write a file, and loads no
pickle. It has no network but the machine's: the libraries are told to use none.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

from transformer.text.foreign.reader import ExtraNeeded, open_reader

MAX_ANSWER = 2_000_000  # ids or characters of one answer
_NOT_NEEDED = ("torch", "tensorflow", "jax", "pandas", "scipy", "sklearn", "matplotlib", "PIL")


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """The first request names the folder; each of the others a method of ``Reader`` and what it is given. Each says
    how many ``seconds`` of processor time it may take."""
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
        except ExtraNeeded:
            answer = {"needs": "hf"}
        except BaseException as error:  # a panic of the tokenizers library is no Exception
            answer = {"problem": (str(error) or type(error).__name__).strip().split("\n")[0][:300]}
        _limit_time(0)
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def _checked(found: object) -> dict:
    """An answer that would fill the memory of whoever asked is not sent."""
    sizes = (len(part) if isinstance(part, (list, str)) else 1 for part in found) if isinstance(found, list) else ()
    return {"too_many": MAX_ANSWER} if sum(sizes) > MAX_ANSWER else {"found": found}


def nursery(line: socket.socket) -> None:
    """For every socket that comes down ``line``, a child that serves it."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while found := socket.recv_fds(line, 1, 1)[1]:
        with socket.socket(fileno=found[0]) as own:
            if os.fork() == 0:
                line.close()
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what the libraries print when they panic
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
    """After so much processor time the system ends this process, also inside of a library."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _import_libraries() -> None:
    import pickle

    def refuse(*_: object, **__: object) -> None:
        raise ValueError("pickles are not read")

    for name in _NOT_NEEDED:
        sys.modules.setdefault(name, None)  # transformers finds it missing; importing torch takes seconds
    if find_spec("transformers") is not None:
        from transformers import AutoTokenizer  # noqa: F401 (imported before the process divides)
    pickle.load = pickle.loads = refuse


if __name__ == "__main__":
    _import_libraries()
    if hasattr(os, "fork"):
        nursery(socket.socket(fileno=sys.stdin.fileno()))
    else:
        serve(sys.stdin.buffer, sys.stdout.buffer)
