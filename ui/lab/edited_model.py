"""The model with a list of edits, as pages ask for it: effects, new answers, importance of heads; from the cache."""

from __future__ import annotations

import streamlit as st

import transformer
from transformer.analysis.answers import effects, padding
from transformer.analysis.answers.answer_probabilities import Answer
from transformer.analysis.heads import head_importance
from transformer.runs.edit_specs import edits_from
from transformer.runs.traces import Trace
from ui.compute.byte_limited_cache import ByteLimitedCache
from ui.shell.page import Page
from ui.words.texts import Spoken

# An effect holds a whole trace of its own; the one that it is compared with is counted where traces are kept.
EFFECTS: ByteLimitedCache[effects.Effect] = ByteLimitedCache(
    limit=128_000_000, size_of=lambda effect: effect.edited.activations.n_bytes
)


def effect(p: Page, specs: tuple[str, ...]) -> effects.Effect:
    """The page's answer under the edits that ``specs`` name (``transformer.runs.edit_specs``), teacher forced."""
    checkpoint, trace = p.checkpoint, p.trace
    if not specs:  # nothing runs, so there is nothing to keep
        return effects.effect_of(trace, ())
    return EFFECTS.get((*_key(p), specs), lambda: effects.effect_of(trace, edits_from(checkpoint, specs)))


def new_answer(p: Page, specs: tuple[str, ...]) -> Answer:
    """What the model answers by itself under the edits (no ``specs``: as it is), whatever target was given."""
    fingerprint, sentence, _, pads = _key(p)
    return _new_answer(fingerprint, sentence, pads, specs, _checkpoint=p.checkpoint)


def answer_without_pads(p: Page) -> Answer:
    """What the model answers to the sentence alone."""
    fingerprint, sentence, _, _ = _key(p)
    return _new_answer(fingerprint, sentence, 0, (), _checkpoint=p.checkpoint)


@st.cache_resource(max_entries=128, show_spinner=False)
def _new_answer(
    fingerprint: str, sentence: str, pads: int, specs: tuple[str, ...], *, _checkpoint: transformer.Checkpoint
) -> Answer:
    return effects.answer_under(_checkpoint, sentence, edits_from(_checkpoint, specs), pads=pads)


def measured_heads(p: Page) -> dict[head_importance.Head, head_importance.HeadImportance]:
    """The heads whose importance for the page's answer is known. The page adds to it, chunk by chunk: what one session
    has measured, all have."""
    return _measured_heads(*_key(p))


@st.cache_resource(max_entries=64, show_spinner=False)
def _measured_heads(fingerprint: str, sentence: str, target: str, pads: int) -> dict:
    return {}


def padding_drift(p: Page, trace: Trace) -> tuple[padding.PaddingDrift, ...]:
    """What padding does to the answer in ``trace`` (made without pads), with the mask and without."""
    fingerprint, sentence, target, _ = _key(p)
    return _padding_drift(fingerprint, sentence, target, _checkpoint=p.checkpoint, _trace=trace)


@st.cache_resource(max_entries=64, show_spinner=Spoken("wait.padding"))
def _padding_drift(
    fingerprint: str, sentence: str, target: str, *, _checkpoint: transformer.Checkpoint, _trace: Trace
) -> tuple[padding.PaddingDrift, ...]:
    return padding.padding_drift(_trace)


def _key(p: Page) -> tuple[str, str, str, int]:
    """What the page's trace was made from."""
    config = p.checkpoint.config
    pads = p.focus.pads if config.has_encoder else 0
    return p.checkpoint.fingerprint, p.focus.sentence, p.focus.target if config.has_decoder else "", pads
