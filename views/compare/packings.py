"""Two files of one model, such as four bits and eight: what packing did to a head, to its job, and to the logits."""

import numpy as np
import pandas as pd
import streamlit as st

from charts.toolkit.style import three_digits
from transformer import Checkpoint
from transformer.analysis.answers.answer_probabilities import divergence
from transformer.analysis.answers.answer_rows import asked
from transformer.analysis.answers.change_of_answer import same_tokens
from transformer.roles.sentence_roles import sentence_roles
from transformer.text.message import N_
from ui.compute.store import store
from ui.shell.page import Page
from ui.show.figures import show_table
from ui.words.texts import page_text
from views.compare.run_comparison import Head, Side, show_maps, which_heads

_SHOWN = 8
_SHAPE = ("kind", "d_model", "n_heads", "d_ff", "n_encoder_layers", "n_decoder_layers", "vocabulary_size")


def of_one_model(one: Checkpoint, other: Checkpoint) -> bool:
    """Whether a head of one is the same head of the other: somebody else's models of one shape, with one vocabulary."""
    if not (one.foreign and other.foreign):
        return False
    same = all(getattr(one.config, name) == getattr(other.config, name) for name in _SHAPE)
    return same and one.tokenizer.pieces == other.tokenizer.pieces


def packings(p: Page, other: Checkpoint) -> None:
    """The same head of both over the very tokens of A; then all heads, their jobs, and the logits of the next token."""
    trace = store.get(p.run, ("effect", "packing", other.fingerprint), lambda: same_tokens(p.trace, checkpoint=other))
    first, second = Side("A", p.trace, whole=True), Side("B", trace, whole=True)
    place = (p.focus.stack, p.focus.kind, p.focus.layer, p.focus.head)
    heads = Head(first, *place), Head(second, *place)
    difference = show_maps(p, *heads)
    _jobs(p, first, second)
    _logits(p, first, second)
    which_heads(p, *heads, difference)


def _jobs(p: Page, first: Side, second: Side) -> None:
    """How many heads have another job in this sentence, and which."""
    roles = [
        [role for view in side.trace.attention_views() for role in sentence_roles(view)] for side in (first, second)
    ]
    changed = [(one, other) for one, other in zip(*roles, strict=True) if one.role != other.role]
    said = page_text("heads")["role"]
    named = ", ".join(f"{one.layer}.{one.head} ({said[one.role]} → {said[other.role]})" for one, other in changed[:5])
    key = "packing_jobs" if changed else "packing_same_jobs"
    st.markdown(p.text[key].format(changed=len(changed), heads=len(roles[0]), named=named))


def _logits(p: Page, first: Side, second: Side) -> None:
    """The likeliest next tokens of both, at the first place where the model is asked."""
    question = asked(first.trace)
    if not question.rows:
        return
    row, display = question.rows[0], first.trace.checkpoint.tokenizer.display
    names = first.trace.checkpoint.config.class_names
    display = names.__getitem__ if names else display
    logits = [np.atleast_2d(side.trace.values(question.logits))[row].astype(float) for side in (first, second)]
    chances = [question.log_probabilities(side.trace) for side in (first, second)]
    best = [np.argsort(-found[0])[:_SHOWN] for found in chances]
    shown = sorted({int(id) for ids in best for id in ids}, key=lambda id: -chances[0][0, id])
    st.markdown(
        p.text["packing_logits"].format(
            kl=three_digits(float(divergence(*chances)[0])),
            most=three_digits(float(np.abs(logits[1] - logits[0]).max())),
            mean=three_digits(float(np.abs(logits[1] - logits[0]).mean())),
        )
    )
    table = {
        N_("token"): [display(id) for id in shown],
        p.text["packing_p"].format(side="A"): np.exp(chances[0][0, shown]),
        p.text["packing_p"].format(side="B"): np.exp(chances[1][0, shown]),
        p.text["packing_logit"].format(side="A"): logits[0][shown],
        p.text["packing_logit"].format(side="B"): logits[1][shown],
        "B − A": (logits[1] - logits[0])[shown],
    }
    show_table(pd.DataFrame(table), name="packings")
