"""Two or three files of one model, such as four bits, eight and the original: what packing did to a head, its job, and
the logits."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from charts.toolkit.style import three_digits
from transformer import Checkpoint
from transformer.config import ModelConfig
from transformer.families.family_config import FamilyConfig
from transformer.heads.head_roles import sentence_roles
from transformer.predictions.answer_probabilities import asked, divergence
from transformer.text.message import N_
from ui.lab.experiments import experiment_with
from ui.shell.page import Page
from ui.show.figures import show_table
from ui.words.texts import page_text
from views.compare.run_comparison import Head, Side, show_maps, which_heads

_SHOWN = 8
_SHAPE = ("kind", "d_model", "n_heads", "d_ff", "n_encoder_layers", "n_decoder_layers", "vocabulary_size")


def of_one_shape(one: ModelConfig, other: ModelConfig) -> bool:
    """Whether both are somebody else's models of one shape."""
    foreign = isinstance(one, FamilyConfig) and isinstance(other, FamilyConfig)
    return foreign and all(getattr(one, name) == getattr(other, name) for name in _SHAPE)


def of_one_model(one: Checkpoint, other: Checkpoint) -> bool:
    """Whether a head of one is the same head of the other: somebody else's models of one shape, with one vocabulary."""
    return of_one_shape(one.config, other.config) and one.tokenizer.pieces == other.tokenizer.pieces


def packings(p: Page, others: Sequence[Checkpoint]) -> None:
    """The same head of all over the very tokens of A; then all heads, their jobs, and the logits of the next token."""
    sides = [Side("A", p.trace, whole=True)]
    for letter, other in zip("BC", others, strict=False):
        sides.append(Side(letter, experiment_with(p.run, checkpoint=other).changed, whole=True))
    place = (p.focus.stack, p.focus.kind, p.focus.layer, p.focus.head)
    heads = [Head(side, *place) for side in sides]
    differences = show_maps(p, *heads)
    _jobs(p, sides)
    _logits(p, sides)
    which_heads(p, *heads, differences=differences)


def _jobs(p: Page, sides: Sequence[Side]) -> None:
    """How many heads have another job than in A in this sentence, and which."""
    own, *others = ([role for view in side.trace.attention_views() for role in sentence_roles(view)] for side in sides)
    said = page_text("heads")["role"]
    for side, roles in zip(sides[1:], others, strict=True):
        changed = [(one, other) for one, other in zip(own, roles, strict=True) if one.role != other.role]
        named = ", ".join(
            f"{one.layer}.{one.head} ({said[one.role]} → {said[other.role]})" for one, other in changed[:5]
        )
        key = "packing_jobs" if changed else "packing_same_jobs"
        told = p.text[key].format(changed=len(changed), heads=len(own), named=named)
        st.markdown(f"{side.letter}: {told}" if len(sides) > 2 else told)


def _logits(p: Page, sides: Sequence[Side]) -> None:
    """The likeliest next tokens of all, at the first place where the model is asked."""
    first, *others = sides
    question = asked(first.trace)
    if not question.rows:
        return
    row, display = question.rows[0], first.trace.checkpoint.tokenizer.display
    names = first.trace.checkpoint.config.class_names
    display = names.__getitem__ if names else display
    own, *logits = (np.atleast_2d(side.trace.values(question.logits))[row].astype(float) for side in sides)
    chances = [question.log_probabilities(side.trace) for side in sides]
    best = [np.argsort(-found[0])[:_SHOWN] for found in chances]
    shown = sorted({int(id) for ids in best for id in ids}, key=lambda id: -chances[0][0, id])
    table = {N_("token"): [display(id) for id in shown]}
    for side, chance in zip(sides, chances, strict=True):
        table[p.text["packing_p"].format(side=side.letter)] = np.exp(chance[0, shown])
    table[p.text["packing_logit"].format(side="A")] = own[shown]
    for side, found, chance in zip(others, logits, chances[1:], strict=True):
        far = np.abs(found - own)
        numbers = {"kl": float(divergence(chances[0], chance)[0]), "most": float(far.max()), "mean": float(far.mean())}
        told = {name: three_digits(number) for name, number in numbers.items()}
        st.markdown(p.text["packing_logits"].format(side=side.letter, **told))
        table[f"{side.letter} − A"] = (found - own)[shown]
    show_table(pd.DataFrame(table), name="packings")
