"""Record what becomes of every hostile input, and check that no input that was refused opens.

    python -m tests.golden.refusals record [WORD ...]   write refusals.json; with words only the inputs named so
    python -m tests.golden.refusals check [WORD ...]    compare today's program with it
    python -m tests.golden.refusals check --every 12    a sample: every twelfth input; the date says where it begins

Each input (``tests/golden/hostile.py``) goes through the public door of the program in a process of its own, which has
a limit of memory and of processor time, and no network. Its outcome is one of

* refused: a sentence of the program's own, or an address whose value is not taken;
* opened;
* failed: an error that is not written for a reader;
* stopped: at the limit of time or memory, at the network, or by a signal.

The memory is the largest growth of that process, in steps of 50 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
os.environ |= dict.fromkeys(("HF_HUB_CACHE", "OLLAMA_MODELS", "LM_STUDIO_MODELS"), "/nowhere")

from tests.golden.hostile import BASES, Hostile, corpus
from tests.nights import DAY

HERE = Path(__file__).resolve().parent
TABLE, REFUSED_NOW = HERE / "refusals.json", HERE / "refused_now.txt"
SECONDS, GIGABYTES, PATIENCE = 20, 4, 400  # of processor time and of memory; seconds until a process is ended
STEP, FACTOR, MORE = 50, 1.5, 100  # MB: of the table, and how much more an input may need
HOSTILE = "hostile"  # the folder of every input
REFUSED, OPENED, FAILED, STOPPED = "refused", "opened", "failed", "stopped"
Outcome = tuple[str, str]  # and the first words of what was said


# ---- doors -----------------------------------------------------------------------------------------------------------


def _folder(path: Path) -> None:
    import transformer

    transformer.load(path)


def _config(path: Path) -> None:
    from transformer.files.layout import config_of

    config_of(path)


def _chat(path: Path) -> None:
    import transformer
    from transformer.files.chats import with_prompt
    from transformer.runs.inputs import prompt_ids
    from transformer.text.prompt import Prompt

    prompt_ids(with_prompt(transformer.load(path), Prompt(True)), "yes")


def _text(path: Path) -> None:
    import transformer

    tokenizer = transformer.load(path).tokenizer
    for text in ("a" * 30_000 + "!", "a" * 40, "ﬁ ½ é cat"):
        tokenizer.encode(text)


def _upload(sent: Any) -> None:
    from transformer.files.received_files import receive

    files = sent if isinstance(sent, dict) else {file.name: file.read_bytes() for file in sent.iterdir()}
    folder = Path(tempfile.mkdtemp())
    try:
        receive(files, folder)
    except ValueError as error:
        assert str(folder) not in str(error), "a folder of the server is named"
        assert not list(folder.iterdir()), "something was kept"
        raise


def _image(content: bytes) -> None:
    from transformer.pictures.image_files import image_text

    image_text(content)


def _trace(path: Path) -> None:
    import transformer

    transformer.read_trace(path)


def _recipe(path: Path) -> None:
    from transformer.training.recipe import load_recipe

    load_recipe(path)


def _state(path: Path) -> None:
    from transformer.training.run_state import STATE, load_state

    (path / "state").rename(path / STATE)
    load_state(path)


def _page(page: str, address: dict[str, Any]) -> Outcome:
    """Open a page; an address is refused if the page warns, or one of its values is not there afterwards."""
    from tests.conftest import open_by_address

    app = open_by_address(page, address)
    if app.exception:
        return FAILED, app.exception[0].message
    warned = [element.value for element in (*app.error, *app.warning)]
    # A checkpoint that is the only one in the list is left out of the address.
    own = {name: value for name, value in address.items() if value != HOSTILE}
    gone = [name for name, value in own.items() if _texts(app.query_params.get(name, [])) != _texts(value)]
    return (REFUSED, (warned or [f"not taken: {', '.join(gone)}"])[0]) if warned or gone else (OPENED, "")


def _texts(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else [*value]


def _app(folder: Path) -> Outcome:
    """Show the list of checkpoints with this one among them, and open it."""
    os.environ["GLASSFORMER_CHECKPOINTS"] = str(folder.parent)
    first = _page("overview", {})
    return first if first[0] == FAILED else _page("overview", {"checkpoint": HOSTILE})


DOORS: dict[str, Callable[[Any], Outcome | None]] = {
    "folder": _folder, "config": _config, "text": _text, "chat": _chat, "upload": _upload, "image": _image,
    "trace": _trace, "recipe": _recipe, "state": _state, "app": _app, "address": lambda asked: _page(*asked),
}  # fmt: skip


# ---- one input in one process ----------------------------------------------------------------------------------------


def _refuse_network_and_terminal(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "builtins.input":
        os.write(2, b"asked somebody at the terminal")
        os.kill(os.getpid(), signal.SIGSYS)
    asked = arguments[1][0] if event == "socket.connect" and isinstance(arguments[1], tuple) else ""
    asked = arguments[0] if event == "socket.getaddrinfo" else asked
    if asked and asked not in ("127.0.0.1", "::1", "localhost"):
        os.write(2, f"asked the network for {asked}".encode())
        os.kill(os.getpid(), signal.SIGSYS)


def _run(door: str, opened: Any) -> Outcome:
    try:
        return DOORS[door](opened) or (OPENED, "")
    except (MemoryError, RecursionError) as error:
        return STOPPED, type(error).__name__
    except Exception as error:
        ours = isinstance(error, ValueError | OSError) and type(error).__module__ not in ("torch", "tokenizers")
        return REFUSED if ours else FAILED, f"{type(error).__name__}: {error}"


def _megabytes() -> int:
    own, others = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return max(own, others) // 1000


def outcome_of(hostile: Hostile, bases: Path) -> dict[str, Any]:
    """Return what becomes of an input: ``outcome``, ``words`` and ``megabytes``."""
    with tempfile.TemporaryDirectory() as place:
        shutil.copytree(bases / (hostile.base or "nothing"), folder := Path(place) / HOSTILE)
        made = hostile.make(folder)
        opened, (reads, writes) = folder / hostile.at if made is None else made, os.pipe()
        if not (child := os.fork()):
            _in_child(hostile.door, opened, writes, Path(place))
        os.close(writes)
        until = time.monotonic() + PATIENCE
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            time.sleep(0.01)
            if time.monotonic() > until:
                os.kill(child, signal.SIGKILL)
        with os.fdopen(reads, "rb") as pipe:
            content = pipe.read() if not ended[1] else b""
    if not content:
        reason = signal.Signals(os.WTERMSIG(ended[1])).name if os.WIFSIGNALED(ended[1]) else "it ended"
        return {"outcome": STOPPED, "words": reason, "megabytes": None}
    (outcome, words), megabytes = pickle.loads(content)
    words = re.sub(r"\s+", " ", words.replace("\\", "").replace(f"{folder}/", "").replace(place, "…"))
    return {"outcome": outcome, "words": words, "megabytes": round(megabytes / STEP) * STEP}


def _in_child(door: str, opened: Any, writes: int, place: Path) -> None:
    """Open the input within limits, write what became of it, and end the process."""
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + GIGABYTES * 10**9,) * 2)
        tempfile.tempdir = str(place)
        sys.addaudithook(_refuse_network_and_terminal)
        before = _megabytes()
        found = _run(door, opened), max(0, _megabytes() - before)
        os.write(writes, pickle.dumps(found))
    finally:
        os._exit(0)


def _prepare(chosen: Iterable[Hostile], place: Path) -> Path:
    """Write the sound folders, and import once what each process needs."""
    import transformer  # noqa: F401

    bases, doors = {hostile.base for hostile in chosen}, {hostile.door for hostile in chosen}
    for base in sorted(bases | {"translator", ""}):
        BASES[base](place / (base or "nothing"))
    if doors & {"app", "address"}:
        from tests.conftest import open_by_address

        (place / "list").mkdir()
        shutil.copytree(place / "translator", place / "list" / "translator")
        os.environ["GLASSFORMER_CHECKPOINTS"] = str(place / "list")
        pages = {hostile.make(place)[0] for hostile in chosen if hostile.door == "address"}
        for page in sorted(pages | {"overview"}):
            open_by_address(page, {})
    return place


# ---- the table -------------------------------------------------------------------------------------------------------


def drawn(every: int) -> list[Hostile]:
    """Return every n-th input; the date says where it begins."""
    return corpus()[random.Random(DAY).randrange(every) :: every]


def found_now(chosen: list[Hostile]) -> dict[str, dict[str, Any]]:
    """Return what becomes of each input today, by its name."""
    with tempfile.TemporaryDirectory() as place, mock.patch.dict(os.environ):
        bases = _prepare(chosen, Path(place))
        return {hostile.name: outcome_of(hostile, bases) for hostile in chosen}


def problems(found: Mapping[str, dict[str, Any]]) -> list[str]:
    """Return one line for each input of which something worse became than is recorded."""
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    listed = {line.split(" — ")[0] for line in REFUSED_NOW.read_text(encoding="utf-8").splitlines()}
    worse = {
        name: problem(table[name], now, listed=name in listed) if name in table else "is not in refusals.json"
        for name, now in found.items()
    }
    worse |= {name: "is recorded, but not in the corpus" for name in table.keys() - {each.name for each in corpus()}}
    return [f"{name}: {words}" for name, words in worse.items() if words]


def problem(was: dict[str, Any], now: dict[str, Any], *, listed: bool) -> str:
    """Return what is worse than it was, or an empty text."""
    change = f"was {was['outcome']} ({was['words']}), is {now['outcome']} ({now['words'][:200]})"
    if now["outcome"] != was["outcome"]:
        allowed = now["outcome"] == REFUSED and (listed or was["outcome"] != OPENED)
        return "" if allowed else change
    if (now["megabytes"] or 0) > (was["megabytes"] or 0) * FACTOR + MORE:
        return f"needs {now['megabytes']} MB; needed {was['megabytes']} MB"
    return ""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("task", choices=("record", "check"))
    parser.add_argument("words", nargs="*", help="only inputs whose names contain one of these words")
    parser.add_argument("--every", type=int, default=1, help="only every n-th input")
    asked = parser.parse_args(arguments)
    sample = drawn(asked.every)
    chosen = [each for each in sample if not asked.words or any(word in each.name for word in asked.words)]
    found = found_now(chosen)
    if asked.task == "record":
        table = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
        table |= {name: row | {"words": row["words"][:80]} for name, row in found.items()}
        lines = [f"{json.dumps(each.name)}: {json.dumps(table[each.name])}" for each in corpus() if each.name in table]
        TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        return 0
    worse = problems(found)
    for line in worse:
        print(line)
    return int(bool(worse))


if __name__ == "__main__":
    sys.exit(main())
