"""Connection to the process that runs one tokenizer (``process.py``): requests, replies, and restarts."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import weakref
from contextlib import suppress
from pathlib import Path
from threading import Lock, Timer

from transformer.errors import InputError
from transformer.system import offline
from transformer.system.python_process import start_python
from transformer.text.tokenizer_files import unreadable

PROCESS_BYTES = 20_000_000  # a process's share of memory with a small vocabulary, as Linux counts it (Pss)
GIGABYTES = 2  # gigabytes of memory; opening Gemma's 262,144 entries takes 0.8
OPENING_SECONDS, TEXT_SECONDS = 60, 20  # seconds of processor time
TEMPLATE_SECONDS = 3  # seconds of processor time; filling in a chat template takes milliseconds
_MOST_REMEMBERED = 1000
_LONGEST_ANSWER = 200_000_000  # bytes; Gemma's vocabulary takes 6 million
_WAITING = 4  # multiple of a request's processor time, for busy machines and files without end
_SETTINGS = {
    **offline.SETTINGS,
    "TRANSFORMERS_VERBOSITY": "critical",
    "TOKENIZERS_PARALLELISM": "false",
    "MALLOC_ARENA_MAX": "2",
}
_ARGUMENTS = ("-W", "ignore", "-m", "transformer.text.guests.process")


class Connection:
    """One tokenizer in a process of its own, which ends with this object.

    If a text ends the process, the next request starts another. Threads take turns.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self._place = folder, folder.resolve()
        self._lock = Lock()
        self.description = self._begin()

    def ask(self, method: str, **given: object) -> object:
        """Call a method of ``Reader`` in the other process, and return its result.

        Raises:
            InputError: If a text needs too much time or memory.
            CheckpointError: If the libraries report any other problem.
        """
        chat = _template_and_variables(self.description, given) if method == "chat" else None
        with self._lock:
            if chat in _endless:
                raise _endless_template()
            if self._line is None:
                self._begin()
            seconds = TEXT_SECONDS if chat is None else TEMPLATE_SECONDS
            answer = self._line.answer({"method": method, "given": given}, seconds)
            if answer is None:
                self._line = None
            if chat is not None and (answer is None or "too_many" in answer):
                _remember(chat)
                raise _endless_template()
        length = sum(map(len, given.get("texts", ()))) or len(given.get("text", ""))
        if answer is None or "too_many" in answer:
            raise InputError(
                f"the tokenizer needs more than {TEXT_SECONDS} seconds or {GIGABYTES} GB for a text of {length:,} "
                "characters, or makes millions of tokens of it. Take a shorter text, or another tokenizer."
            )
        return self._found(answer)

    def _begin(self) -> dict:
        line = _Line()
        answer = line.answer({"folder": str(self._place), "gigabytes": GIGABYTES}, OPENING_SECONDS)
        if answer is None:
            problem = f"opening it takes more than {OPENING_SECONDS} seconds or {GIGABYTES} GB"
            raise unreadable(self.folder, problem)
        found = self._found(answer)
        self._line = line
        return found

    def _found(self, answer: dict) -> object:
        if "problem" in answer:
            raise unreadable(self.folder, answer["problem"])
        return answer["found"]


# Chat templates that took too long, with their variables: the next use of one is refused at once, in every session.
# The order lets the oldest be forgotten first.
_endless: dict[tuple[str, str], None] = {}


def _template_and_variables(description: dict, given: dict) -> tuple[str, str]:
    return description["template"], json.dumps(given["variables"], sort_keys=True)


def _remember(chat: tuple[str, str]) -> None:
    _endless[chat] = None
    for oldest in list(_endless)[:-_MOST_REMEMBERED]:
        _endless.pop(oldest, None)


def _endless_template() -> InputError:
    return InputError(
        f"The chat template of this tokenizer takes more than {TEMPLATE_SECONDS} seconds or {GIGABYTES} GB, "
        "or writes millions of tokens, so it is not tried again. Read the text as it is instead of as a "
        "chat."
    )


class _Line:
    """Two pipes to a process that serves one tokenizer."""

    def __init__(self) -> None:
        if hasattr(os, "fork"):
            own, its = socket.socketpair()
            with its:
                _nursery.send(its)
            self._answers, self._requests = own.makefile("rb"), own.makefile("wb")
            self._end = weakref.finalize(self, _shut, own)
        else:
            process = start_python(*_ARGUMENTS, environment=_SETTINGS, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            self._answers, self._requests = process.stdout, process.stdin
            self._end = weakref.finalize(self, process.kill)

    def answer(self, request: dict, seconds: float) -> dict | None:
        """Send a request and return the reply; None if the process ended or ran out of time."""
        timer = Timer(_WAITING * seconds, self._end)
        timer.daemon = True
        timer.start()
        try:
            self._requests.write(json.dumps(request | {"seconds": seconds}).encode() + b"\n")
            self._requests.flush()
            found = self._answers.readline(_LONGEST_ANSWER)
            return json.loads(found) if found.endswith(b"\n") else None
        except (OSError, ValueError):
            return None
        finally:
            timer.cancel()


def _shut(line: socket.socket) -> None:
    """Close the connection even while another thread waits for a reply; the process then exits."""
    with suppress(OSError):  # the process has ended already
        line.shutdown(socket.SHUT_RDWR)
    line.close()


class _Nursery:
    """The process that has imported the libraries; it starts when the first tokenizer is opened."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen | None = None
        self._line: socket.socket | None = None

    def send(self, line: socket.socket) -> None:
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._line, its = socket.socketpair()
                with its:
                    self._process = start_python(*_ARGUMENTS, environment=_SETTINGS, stdin=its)
            socket.send_fds(self._line, [b"1"], [line.fileno()])


_nursery = _Nursery()
