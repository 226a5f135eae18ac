"""Any text on five kinds of model: traced, or refused in a sentence."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import transformer
from tests.kinds_of_text import KINDS_OF_TEXT, UNREADABLE
from transformer.errors import InputError

KINDS = ("tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment", "hf-gpt2")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", KINDS_OF_TEXT)
def test_a_text_is_traced_or_refused(tiny_checkpoint: Callable, family: Callable, kind: str, name: str) -> None:
    checkpoint = (family if kind.startswith("hf-") else tiny_checkpoint)(kind)
    try:
        trace = transformer.trace(checkpoint, KINDS_OF_TEXT[name])
    except InputError as refused:
        assert name in UNREADABLE or "surrogate" in name, refused
        assert str(refused).strip() and "Traceback" not in str(refused)
        return
    logits = next(values for values in map(trace.values, trace.names()) if values.ndim)
    assert np.isfinite(logits).all()
    assert all(token.display for stack in trace.stacks for token in trace.tokens(stack))
