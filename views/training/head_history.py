"""When heads acquired their roles, by the tests of the literature at every snapshot."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

import transformer
from charts.toolkit.head_names import head_in_full
from charts.toolkit.numbers import whole
from transformer.files.layout import file_of_results
from transformer.heads.roles_through_training import FILE, HeadHistory, RoleHistory, load_role_history, role_history
from ui.compute.store import store
from ui.lab.role_names import test_name
from ui.shell.page import Page
from ui.show.figures import show_figure, show_snippet, show_source
from ui.words.catalogues import translate
from ui.words.texts import as_plain, page_text
from views.training.curve_figures import repeated_loss_curve, role_curves

_MOST = 12  # lines that can still be distinguished
_WITHOUT_ROLE = 3


def roles_through_training(p: Page) -> None:
    """Draw the history of the heads, if the checkpoint has one."""
    file = file_of_results(p.checkpoint.path, FILE)
    stamp = file.stat().st_mtime_ns if file.is_file() else 0
    try:
        history = store.get(p.checkpoint, ("head history", stamp), lambda: load_role_history(p.checkpoint))
    except (transformer.CheckpointError, OSError) as error:
        st.caption(as_plain(translate(error)))
        return
    if history is None:
        return
    st.subheader(p.text["roles"], anchor=False)
    shown = _shown(history)
    st.markdown(_in_words(p, history))
    show_figure(
        role_curves(_rows(p, history, shown)),
        name="jobs-through-training",  # lessons refer to it
        caption=p.text["roles_caption"].format(count=history.n_sentences),
    )
    if history.repeated_loss:
        losses = pd.DataFrame({"step": history.steps, "value": history.repeated_loss})
        show_figure(
            repeated_loss_curve(losses), name="repeated-loss-through-training", caption=p.text["roles_repeated"]
        )
    name = p.focus.checkpoint
    show_snippet(
        "roles",
        f"{p.preamble}\nfrom transformer.heads.roles_through_training import load_role_history\n\n"
        "history = load_role_history(checkpoint)\n"
        "for head in history.heads:\n"
        "    if head.has_role:\n"
        "        print(head.place, head.test, dict(zip(history.steps, head.strengths)))\n"
        f"# made by: python -m transformer heads --checkpoint checkpoints/{name} --history --save\n",
    )
    show_source(role_history)


def _shown(history: RoleHistory) -> Sequence[HeadHistory]:
    """Return the heads with a role at the end, strongest first; if there are none, the closest."""
    ordered = sorted(history.heads, key=lambda head: -head.strengths[-1])
    return [head for head in ordered if head.has_role][:_MOST] or ordered[:_WITHOUT_ROLE]


def _rows(p: Page, history: RoleHistory, shown: Sequence[HeadHistory]) -> pd.DataFrame:
    heads = page_text("heads")
    return pd.DataFrame(
        {
            "step": step,
            "value": strength,
            "head": head_in_full(head.place),
            "test": test_name(head.test, head.where, heads),
        }
        for head in shown
        for step, strength in zip(history.steps, head.strengths, strict=True)
    )


def _in_words(p: Page, history: RoleHistory) -> str:
    """Show how many heads have a role at the end, and between which two steps most of them acquired it."""
    with_role = [head for head in history.heads if head.has_role]
    if not with_role:
        return p.text["roles_none"].format(heads=len(history.heads))
    found = [next(i for i, strength in enumerate(head.strengths) if strength >= 1) for head in with_role]
    counts = [found.count(index) for index in range(len(history.steps))]
    said_all = p.text["roles_found"].format(count=len(with_role), heads=len(history.heads))
    index = max(range(1, len(counts)), key=counts.__getitem__)
    if not counts[index]:
        return said_all
    before, after = (whole(history.steps[k]) for k in (index - 1, index))
    return f"{said_all} {p.text['roles_moment'].format(count=counts[index], before=before, after=after)}"
