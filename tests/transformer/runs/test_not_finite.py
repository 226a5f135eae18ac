"""A pass with non-finite numbers: the trace states where they begin; nothing is computed from it."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch

import transformer
from transformer import Checkpoint, NotFiniteError
from transformer.interventions.experiment import experiment
from transformer.predictions.answer_probabilities import read_answer
from transformer.runs.activation import Activation
from transformer.runs.not_finite import NotFinite, first_not_finite
from transformer.runs.readings import readings
from transformer.runs.trace_files import trace_from_bytes, trace_to_bytes

SENTENCE = "The cat sat on the mat."
KINDS = ("translator", "gpt", "bert", "sentiment")


@pytest.fixture
def damaged(tiny_checkpoint: Callable[[str], Checkpoint]) -> Callable[..., Checkpoint]:
    """Return ``damaged(kind, name, change)``, a tiny checkpoint with changed parameters ``…name``."""

    def make(kind: str, name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Checkpoint:
        checkpoint = tiny_checkpoint(kind)
        model = deepcopy(checkpoint.model)
        with torch.no_grad():
            for own, parameter in model.named_parameters():
                if own.endswith(name):
                    parameter.copy_(change(parameter))
        return replace(checkpoint, model=model)

    return make


def too_large(weights: torch.Tensor) -> torch.Tensor:
    return weights * 1e30


def with_nan(weights: torch.Tensor) -> torch.Tensor:
    changed = weights.clone()
    changed.view(-1)[0] = float("nan")
    return changed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "change"), [("", too_large), ("layers.1.self_attention.query_projection.bias", with_nan)]
)
def test_the_trace_exists_and_names_the_first(damaged: Callable, kind: str, name: str, change: Callable) -> None:
    checkpoint = damaged(kind, name, change)
    trace = transformer.trace(checkpoint, SENTENCE)
    found = trace.first_not_finite
    for earlier in trace.names()[: trace.names().index(found.name)]:
        assert earlier.endswith(".scores") or np.isfinite(trace.values(earlier)).all()
    assert not np.isfinite(trace.values(found.name)).all()
    if change is with_nan:
        assert found.kind == "NaN" and found.name.endswith("layers.1.self_attention.query") and found.position == 0
    with pytest.raises(NotFiniteError, match=f"{found.name} is .*the weights of this model are too large or damaged"):
        trace.check_finite()
    assert found.name in trace._repr_html_()
    assert trace_from_bytes(trace_to_bytes(trace)).first_not_finite == found
    for compute in (read_answer, lambda trace: experiment(trace, ())):  # no answer is compared
        with pytest.raises(NotFiniteError, match="first activation of the forward pass"):
            compute(trace)
    with pytest.raises(NotFiniteError, match=r"NaN at position 0" if change is with_nan else " is "):
        list(readings(checkpoint, [SENTENCE, "The dog sleeps under the table."]))


@pytest.mark.parametrize("kind", ["translator", "gpt"])
@pytest.mark.parametrize(
    "strategy", [transformer.Greedy(), transformer.Sample(), transformer.Sample(top_k=3, top_p=0.9), transformer.Beam()]
)
def test_decoding_names_the_first(damaged: Callable, kind: str, strategy: object) -> None:
    with pytest.raises(NotFiniteError, match="is .* at position .*the first activation of the forward pass"):
        transformer.decode(damaged(kind, "", too_large), SENTENCE, strategy)


def test_an_edit_is_named_as_the_cause(tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint("gpt")
    edits = [
        transformer.scale_head("decoder", layer=0, kind="self", head=0, factor=1e30),
        transformer.scale_head("decoder", layer=1, kind="self", head=0, factor=1e30),
    ]
    trace = transformer.trace(checkpoint, SENTENCE, edits=edits)
    with pytest.raises(NotFiniteError, match="With these edits, decoder.*undo or weaken an edit"):
        trace.check_finite()
    sound = transformer.trace(checkpoint, SENTENCE)
    with pytest.raises(NotFiniteError, match="With these edits"):
        experiment(sound, edits)


def test_scores_that_the_mask_hides_do_not_count() -> None:
    scores = np.array([[[1.0, np.inf], [1.0, 2.0]]], dtype=np.float32)
    allowed = np.array([[True, False], [True, True]])
    name = "decoder.layers.0.self_attention"
    found = {
        f"{name}.scores": Activation(f"{name}.scores", ("head", "query", "key"), scores),
        f"{name}.allowed": Activation(f"{name}.allowed", ("query", "key"), allowed),
    }
    assert first_not_finite(found) is None
    scores[0, 1, 0] = -np.inf
    assert first_not_finite(found) == NotFinite(f"{name}.scores", "−∞", 1)


def test_large_sums_of_finite_numbers_are_finite() -> None:
    large = Activation("encoder.x", ("position", "model"), np.full((4, 4), 3e38, dtype=np.float32))
    assert first_not_finite({"encoder.x": large}) is None
