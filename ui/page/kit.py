"""What every page needs: texts that escape their values, results with their Python, options, tables.

``Page`` inherits from ``Kit``:

    found = p.calc(vocabulary_neighbours, p.checkpoint, token, name="near")
    p.say("nearest", token=found[0].label, similarity=found[0].cosine)
    p.table([{"token": one.label, "cosine": one.cosine} for one in found], name="neighbours")
    p.code()

No page builds the key of a result, a snippet of Python, or escapes a text.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from transformer import Checkpoint, Trace
from transformer.runs.run import Run
from transformer.text.tokens import TokenSequence
from ui.compute.jobs import jobs
from ui.compute.store import store
from ui.shell import choice
from ui.shell.focus import select
from ui.show.figures import chosen_row, show_code, show_formula, show_table
from ui.words.once_a_run import once_a_run
from ui.words.texts import Marked, PageText, common, filled, label_in_words, number_text, page_texts

IMPORTABLE = ("transformer", "charts")  # what a reader's Python can import without Streamlit


@dataclass(frozen=True)
class _Known:
    """A value with its Python, its part of a key, and the checkpoint or run that it belongs to."""

    value: object
    python: str
    key: Hashable
    of: Checkpoint | Run | None


@once_a_run
def _known_of_this_run() -> dict[int, _Known]:
    """Return the values of this run by ``id``; a session keeps its page, but never these."""
    return {}


@once_a_run
def _variables_of_this_run() -> set[str]:
    return set()


class Kit:
    """Part of ``Page``, which has its name, texts, checkpoint, trace, run, and the preamble of its Python."""

    if TYPE_CHECKING:
        name: str
        text: PageText
        checkpoint: Checkpoint
        trace: Trace
        run: Run
        preamble: str

    def __init__(self) -> None:
        self._imports: dict[str, None] = {}
        self._lines: dict[str, str] = {}  # Python by its variable
        self._used: dict[Callable, None] = {}

    # ---- texts ------------------------------------------------------------------------------------------------------

    def words(self, key: str, /, **values: Any) -> str:
        """Return a text of this page by its dotted name as plain text: for canvas, tables, figures."""
        return filled(self._text_of(key), values, markdown=False)

    def md(self, key: str, /, **values: Any) -> Marked:
        """Return a text of this page as Markdown: for labels of widgets, captions, other texts."""
        return Marked(filled(self._text_of(key), values, markdown=True))

    def say(self, key: str, /, *, small: bool = False, icon: str = "", **values: Any) -> None:
        """Write a text of this page; ``icon`` is the name of one of Material's symbols."""
        sign = f":material/{icon}: " if icon else ""
        (st.caption if small else st.markdown)(sign + self.md(key, **values))

    def formula(self, latex: str, key: str = "", /, **values: Any) -> None:
        """Write a formula with its shapes below it."""
        show_formula(latex, caption=self.md(key, **values) if key else "")

    def _text_of(self, key: str) -> str:
        found: Any = self.text
        for name in key.split("."):
            found = found[name]
        return found

    # ---- options ----------------------------------------------------------------------------------------------------

    def option(self, name: str, options: Sequence[str], *, key: str, default: str = "", **more: Any) -> str:
        """Draw a row of buttons, called ``[<name>]`` in the page's text, and kept in the address as ``key``."""
        return choice.one_of(
            self.text[name]["label"], self._names(name, options), default or options[0], key=key, **more
        )

    def asked(self, name: str, options: Sequence[str], *, key: str, default: str = "") -> str:
        """Return what ``option`` returns, before it is drawn."""
        return choice.read_option(key, self._names(name, options), default or options[0])

    def _names(self, name: str, options: Sequence[str]) -> dict[str, list[str]]:
        # Addresses that people kept may hold a name in any language.
        tables = [text[name] for text in (self.text, *page_texts(self.name)) if name in text]
        return {
            option: [
                *[table[option] for table in tables if option in table],
                *choice.FORMER.get(f"{name}_{option}", ()),
            ]
            for option in options
        }

    def toggle(self, name: str, *, key: str, **more: Any) -> bool:
        """Draw a switch, called ``<name>`` in the page's text, with ``<name>_help``."""
        return choice.toggle(self.text[name], key=key, help=self.text.get(f"{name}_help"), **more)

    def token(self, name: str, tokens: TokenSequence, default: int, *, key: str, **more: Any) -> int:
        """Draw the choice of a token, called ``<name>`` in the page's text."""
        labels = [number_text(place, label_in_words(label)) for place, label in enumerate(tokens.labels)]
        more = {"owner": tokens.ids, "format_func": labels.__getitem__} | more
        return choice.select(self.text[name], range(len(tokens)), default, key=key, **more)

    # ---- results and their Python -----------------------------------------------------------------------------------

    def calc(
        self,
        function: Callable,
        /,
        *arguments: Any,
        name: str = "",
        slow: bool = False,
        passes: int = 0,
        keep: bool = True,
        reads: Path | None = None,
        wait: str = "",
        shows: Sequence[str] = (),
        **more: Any,
    ) -> Any:
        """Return ``function(*arguments, **more)``, computed once for all sessions; record its Python.

        Two sessions share a result only if the function, all arguments and the checkpoint's files are the same.

        Args:
            function: A function of ``transformer`` or ``charts``, or a method of one of the ``arguments``' kinds,
                which is called each time.
            arguments: Plain values, ``p.checkpoint``, its model and tokenizer, ``p.trace``, and what ``calc`` and
                ``known`` returned in this run.
            name: Name of the result in the code, by default that of the function.
            slow: Whether it runs as a job, with its ``progress`` if it takes one; the result is ``None`` once the
                reader has stopped it.
            passes: About how many forward passes a job takes that does not report its progress.
            keep: Whether the result is kept for all sessions; a map of a long text is too large.
            reads: A file that the function reads, again only after it has changed.
            wait: Text of the frame that is shown meanwhile.
            shows: What the code prints of the result: ``shows=("[3].role", ".scores")``.
            more: Named arguments.

        Raises:
            TypeError: For a function that a reader cannot import, a result of its name, an argument without Python.
        """
        module, qualified = function.__module__, function.__qualname__
        if module.split(".")[0] not in IMPORTABLE or "<" in qualified:
            raise TypeError(f"calc got {module}.{qualified}, which a reader cannot import; move it to transformer")
        if name == qualified:
            raise TypeError(f"calc got the name {name!r} for the result of {name}, which the code could not call again")
        owner = getattr(function, "__self__", None)
        parts = [self._known_as(value) for value in (*arguments, *more.values())]
        written = [part.python for part in parts[: len(arguments)]]
        written += [f"{key}={part.python}" for key, part in zip(more, parts[len(arguments) :], strict=True)]
        call = qualified
        if owner is not None:
            parts = [self._known_as(owner), *parts]
            call = f"{parts[0].python}.{function.__name__}"
        owners = [part.of for part in parts if part.of is not None]
        runs = [owner for owner in owners if isinstance(owner, Run)]
        of = (runs or owners or [self.checkpoint])[0]
        changed = None if reads is None else _changed_at(reads)
        key = ("calc", module, qualified, changed, tuple(more), *(part.key for part in parts))
        if owner is not None or not keep:
            found = function(*arguments, **more)
        elif slow:
            work = partial(_with_progress, function, arguments, more)
            found = jobs.result(of, key, work, doing=common(wait) if wait else "", passes=passes)
            if found is None:
                return None
        else:
            found = store.get(of, key, partial(function, *arguments, **more), wait=wait)
        if owner is None:
            self._imports[f"from {module} import {qualified.partition('.')[0]}"] = None
        variable = self._write(name or f"{function.__name__}_result", f"{call}({', '.join(written)})")
        for part in shows:
            self._lines[f"print {variable}{part}"] = f"print({variable}{part})"
        self._used[getattr(function, "__func__", function)] = None  # a bound method would keep its object
        return self._know(_Known(found, variable, key, of))

    def known(self, value: Any, python: str, *, key: Hashable = None, imports: str = "") -> Any:
        """Return ``value``, which ``calc`` then writes as ``python``; ``key`` is what identifies its content."""
        if imports:
            self._imports[imports] = None
        return self._know(_Known(value, python, (python, key), None))

    def part(self, of: Any, name: str) -> Any:
        """Return an attribute of what ``calc`` returned in this run, which ``calc`` then takes, too."""
        whole = self._known_as(of)
        return self._know(_Known(getattr(of, name), f"{whole.python}.{name}", (whole.key, name), whole.of))

    def code(self, *sources: Callable | type) -> None:
        """Draw, collapsed, the Python of all results, and the source of their functions and ``sources``."""
        show_code(self.name, lambda: self.python, *self._used, *sources)

    @property
    def python(self) -> str:
        """The Python of all that was computed: imports first."""
        imports = "".join(f"{line}\n" for line in sorted(self._imports))
        lines = "".join(f"{line}\n" for line in self._lines.values())
        return self.preamble + "\n" * bool(imports) + imports + "\n" + lines

    def _write(self, name: str, python: str) -> str:
        """Record that a variable is this Python; return its name, numbered if this run has used it."""
        used, variable, number = _variables_of_this_run(), name, 2
        line = f"{variable} = {python}"
        while variable in used and self._lines.get(variable) != line:
            variable, number = f"{name}_{number}", number + 1
            line = f"{variable} = {python}"
        used.add(variable)
        self._lines[variable] = line
        return variable

    def _know(self, known: _Known) -> Any:
        if not isinstance(known.value, str | int | float | bool | None):  # those are their own Python
            _known_of_this_run()[id(known.value)] = known
        return known.value

    def _known_as(self, value: Any) -> _Known:
        """Return a value's Python and key.

        Raises:
            TypeError: If it has none.
        """
        if isinstance(value, str | int | float | bool | None):
            plain = float(value) if isinstance(value, float) else value  # NumPy's repr needs an import
            return _Known(value, repr(plain), (type(plain).__name__, repr(plain)), None)
        if (found := _known_of_this_run().get(id(value))) is not None:
            return found
        if isinstance(value, Trace) and value is self.trace:
            return _Known(value, "trace", self.run, self.run)
        own = self.checkpoint
        for part, python in ((own, ""), (own.model, ".model"), (own.tokenizer, ".tokenizer"), (own.config, ".config")):
            if value is part:  # a run is equal for equal files, languages and prompts
                return _Known(value, f"checkpoint{python}", (python, Run(own, "")), own)
        named = _fields_of(value)
        parts = {name: self._known_as(part) for name, part in named.items()}
        python, of = ", ".join(part.python for part in parts.values()), [part.of for part in parts.values() if part.of]
        key = (type(value).__qualname__, *parts, *(part.key for part in parts.values()))
        if type(value) is list:
            return _Known(value, f"[{python}]", key, next(iter(of), None))
        if type(value) is tuple:
            return _Known(value, f"({python}{',' * (len(named) == 1)})", key, next(iter(of), None))
        self._imports[f"from {type(value).__module__} import {type(value).__qualname__}"] = None
        given = ", ".join(f"{name}={part.python}" for name, part in parts.items())
        return _Known(value, f"{type(value).__qualname__}({given})", key, next(iter(of), None))

    # ---- tables -----------------------------------------------------------------------------------------------------

    def table(self, rows: Sequence[Mapping[str, Any]], *, name: str, caption: str = "", **more: Any) -> None:
        """Show rows of plain values; a column is called by ``[column]`` in the page's text, if it is there."""
        called = self.text.get("column", {})
        show_table(pd.DataFrame(rows).rename(columns=called), name=name, caption=caption, **more)

    def heads_table(self, rows: Sequence[Mapping[str, Any]], *, name: str, caption: str = "") -> None:
        """Show one row per head, with "layer" and "head"; a click on a row selects that head on all pages."""
        follow = partial(_follow, name, [(row["layer"], row["head"]) for row in rows])
        self.table(rows, name=name, caption=caption, height=320, selection_mode="single-row", on_select=follow)


def _follow(name: str, places: Sequence[tuple[int, int]]) -> None:
    if place := chosen_row(name, places):
        select(layer=place[0], head=place[1])


@once_a_run
def _changed_at(file: Path) -> int | None:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return None


def _fields_of(value: Any) -> dict[str, Any]:
    """Return the parts of a tuple, a list, or a data class or named tuple that a reader can import.

    Raises:
        TypeError: If it is none of them.
    """
    if type(value) in (tuple, list):
        return {str(place): part for place, part in enumerate(value)}
    if type(value).__module__.split(".")[0] in IMPORTABLE:
        if is_dataclass(value):
            return {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        if hasattr(value, "_asdict"):
            return value._asdict()
    raise TypeError(f"calc got a {type(value).__name__}, which has no Python; pass it through ``known``")


def _with_progress(function: Callable, arguments: tuple, more: Mapping[str, Any], report: Callable) -> Any:
    progress = {"progress": report} if "progress" in signature(function).parameters else {}
    return function(*arguments, **progress, **more)
