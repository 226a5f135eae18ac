"""The section of Paths with many prompts or pairs: the mean effect of each head on the output."""

import csv
import io
import re
from collections.abc import Iterable
from hashlib import sha256

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from charts.toolkit.head_names import head_in_full
from charts.toolkit.numbers import percent
from charts.toolkit.style import signed, three_digits
from transformer.errors import InputError
from transformer.heads.head_roles import summarise
from transformer.heads.prompt_batch import (
    LARGEST,
    PAIRS,
    WHOLE,
    Case,
    Line,
    PartOverLines,
    PromptBatch,
    Spread,
    cases_of,
    lines_of,
    prompt_batch,
)
from transformer.runs.head_places import Head, all_heads
from ui.compute.jobs import jobs
from ui.compute.store import Name, store
from ui.lab.second_sentence import ready_pairs
from ui.server.limits import limits, public
from ui.shell import choice
from ui.shell.choice import chosen_option
from ui.shell.page import Page
from ui.show.figures import show_formula, show_snippet, show_source, show_table
from ui.words.catalogues import translate
from ui.words.texts import as_plain, common, page_text
from views.paths.patching import draw_heads
from views.paths.paths_view_model import HeadMap

_ASKED, _SHOWN = "paths many: asked", "paths many: shown"
_MEASURES = ("estimated", "patched", "attribution")
_MOST_PROBLEMS = 5
_LONGEST_CODE = 4_000  # characters


def many(p: Page, room: DeltaGenerator) -> None:
    """Draw the prompts, and the heads that matter in all of them, with their spread and the table.

    ``room`` is the space next to the choice of the section.
    """
    known = _ready(p)
    with st.expander(p.text["many_lines"], icon=":material/edit_note:", expanded=known is None):
        content, name = _content(p)
        try:
            cases, problems = _cases(p, content, name)
        except InputError as error:  # earlier measurements stay
            cases, problems = (), (error,)
        for problem in problems[:_MOST_PROBLEMS]:
            st.warning(as_plain(translate(problem)), icon=":material/edit:")
        if len(problems) > _MOST_PROBLEMS:
            st.caption(p.text["many_problems"].format(count=len(problems) - _MOST_PROBLEMS))
        with st.container(horizontal=True, vertical_alignment="bottom"):
            heads = len(all_heads(p.checkpoint.config))
            largest = choice.number(
                p.text["many_largest"], 0, heads, min(heads, LARGEST), key="paths many largest", width=170,
                help=p.text["many_largest_help"],
            )  # fmt: skip
            what = ("prompts", sha256(repr((cases, largest)).encode("utf-8", "replace")).hexdigest())
            if cases and store.known(p.checkpoint, what) is None:
                label = p.text["many_start"].format(count=len(cases))
                st.button(label, icon=":material/play_arrow:", key="paths many start", on_click=_ask, args=(what,))
    if cases and st.session_state.get(_ASKED) == what:
        _measure(p, cases, what, largest)
    elif cases and store.known(p.checkpoint, what) is not None:
        st.session_state[_SHOWN] = what
    if found := _ready(p):
        _results(p, found, room)
    else:
        st.info(p.text["many_unread"], icon=":material/info:")
    show_formula(p.text["many_formula"], caption=p.text["many_shapes"])
    show_snippet(
        "many prompts",
        "import transformer\n"
        "from transformer.heads.prompt_batch import cases_of, lines_of, prompt_batch, read_lines\n\n"
        f"{p.load_line}\n"
        f"cases, problems = cases_of(checkpoint, {_lines_in_python(content, name)})\n"
        f"found = prompt_batch(checkpoint, cases, largest={largest})\n"
        "for row in found.records()[:5]:\n    print(row)\n",
    )
    show_source(prompt_batch, cases_of, summarise)


def _content(p: Page) -> tuple[str | bytes, str]:
    """Return the typed text or the file that replaces it, and its name; a public server takes no files."""
    typed = choice.text(
        p.text["many_label"],
        _example(p),
        key="paths many text",
        owner=p.checkpoint.fingerprint,
        several_lines=True,
        height=150,
        help=p.text["many_help"],
    )
    if public():
        return typed, ""
    sent = st.file_uploader(p.text["many_file"], type=["csv", "tsv", "txt"], max_upload_size=1, key="paths many file")
    if sent is None:
        return typed, ""
    st.caption(p.text["many_instead"].format(name=as_plain(sent.name)))
    return sent.getvalue(), sent.name


def _lines_in_python(content: str | bytes, name: str) -> str:
    if isinstance(content, str) and len(content) <= _LONGEST_CODE:
        return f"lines_of({content!r})"
    return f"read_lines({name or 'pairs.csv'!r})"


def _cases(p: Page, content: str | bytes, name: str) -> tuple[tuple[Case, ...], tuple[InputError, ...]]:
    most = limits().sentences

    def read() -> tuple[tuple[Case, ...], tuple[InputError, ...], int]:
        lines = lines_of(content, name)
        return *cases_of(p.checkpoint, lines[:most]), len(lines)

    digest = sha256(content if isinstance(content, bytes) else content.encode("utf-8", "replace")).hexdigest()
    cases, problems, count = store.get(p.checkpoint, ("prompt lines", digest, name, most), read, wait="wait.prompts")
    if count > most:
        st.caption(common("sentences.cut", most=most, count=count))
    return cases, problems


def _example(p: Page) -> str:
    """Return the included pairs if the model can read all of them, else the pairs of this sentence."""

    def made() -> str:
        text = PAIRS.read_text(encoding="utf-8")
        if p.checkpoint.config.kind == "decoder-only" and not cases_of(p.checkpoint, lines_of(text))[1]:
            return text
        table = io.StringIO()
        writer = csv.writer(table, lineterminator="\n")
        if len(pairs := _readable(p, ready_pairs(p))) < 2:
            pairs += _readable(p, (_with_blank(*pair) for pair in ready_pairs(p)))
        writer.writerows([("clean", "corrupted"), *pairs])
        return table.getvalue()

    return store.get(p.run, "prompt example", made)


def _readable(p: Page, pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    cases, _ = cases_of(p.checkpoint, [Line(0, *pair) for pair in pairs])
    return [case.line[1:3] for case in cases]


def _with_blank(clean: str, corrupted: str) -> tuple[str, str]:
    """Return both sentences with a blank instead of their last long common word, for a masked-token model."""
    for word in re.findall(r"\w{3,}", clean)[::-1]:
        if clean.count(word) == corrupted.count(word) == 1:
            return clean.replace(word, "___"), corrupted.replace(word, "___")
    return clean, corrupted


def _ask(what: Name) -> None:
    st.session_state[_ASKED] = what


def _forget() -> None:
    st.session_state.pop(_ASKED, None)


def _ready(p: Page) -> PromptBatch | None:
    """Return the latest measurement with this checkpoint; it stays until the next one is complete."""
    shown: Name | None = st.session_state.get(_SHOWN)
    return None if shown is None else store.known(p.checkpoint, shown)


def _measure(p: Page, cases: tuple[Case, ...], what: Name, largest: int) -> None:
    checkpoint, text = p.checkpoint, p.text
    jobs.result(
        checkpoint,
        what,
        lambda report: prompt_batch(checkpoint, cases, largest=largest, progress=report),
        saying=lambda done, total: text["many_measuring"].format(done=done, total=total),
        on_cancel=_forget,
    )
    _forget()
    st.session_state[_SHOWN] = what
    st.rerun()  # runs again to collapse the list of prompts


def _results(p: Page, found: PromptBatch, room: DeltaGenerator) -> None:
    text = p.text
    measures = [name for name in _MEASURES if any(getattr(part, name).count for part in found.parts)]
    with room:
        measure = chosen_option(text, "many_measure", measures, key="paths_many_measure")
    heads = [part for part in found.parts if part.head != WHOLE and getattr(part, measure).count]
    best = max(heads, key=lambda part: abs(getattr(part, measure).mean))
    st.markdown(_in_words(p, found, best, measure))
    _draw_map(p, found, measure)
    names, roles = text["many_column"], page_text("heads")["role"]
    table = pd.DataFrame(found.records()).astype({"head": "Int64"})
    table["role"] = [roles.get(role, "") for role in table["role"]]
    ranked = table.assign(size=[part.size for part in found.parts]).sort_values("size", ascending=False)
    show_table(ranked.drop(columns="size").rename(columns=names), name="heads-over-many-prompts", height=300)
    lines = pd.DataFrame(found.lines())
    show_table(lines.rename(columns=names), name="many-prompts", caption=text["many_lines_caption"], height=240)


def _in_words(p: Page, found: PromptBatch, best: PartOverLines, measure: str) -> str:
    spread: Spread = getattr(best, measure)
    words = p.text[f"many_says_{measure}"].format(
        head=as_plain(head_in_full(Head(best.stack, best.kind, best.layer, best.head))),
        mean=signed(spread.mean),
        std=_known(spread.std),
        share=percent(spread.mean / found.gap.mean) if found.gap.count and found.gap.mean else "–",
    )
    if not found.gap.count:
        return words
    gap = {"mean": three_digits(found.gap.mean), "std": _known(found.gap.std), "count": found.gap.count}
    return f"{p.text['many_gap'].format(**gap)} {words}"


def _known(value: float) -> str:
    return "–" if np.isnan(value) else three_digits(value)  # a single prompt has no spread


def _draw_map(p: Page, found: PromptBatch, measure: str) -> None:
    """Draw the means: one row per layer of each kind of attention, one column per head."""
    text = p.text
    heads = {
        Head(part.stack, part.kind, part.layer, part.head): getattr(part, measure).mean
        for part in found.parts
        if part.head != WHOLE
    }
    draw_heads(
        p,
        HeadMap.of(heads),
        key="many prompts",
        title=text[f"many_map_{measure}"],
        value_name=text["many_value"],
        phrase="",
        masked_text=text["many_not_measured"],
    )
    st.caption(text["many_caption"])
