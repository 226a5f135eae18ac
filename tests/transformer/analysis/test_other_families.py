"""What the pages compute beside a pass, for models that are not built as the paper's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import transformer
from tests.foreign_checkpoints import FOREIGN
from transformer.analysis.attention.attention_path import attention_path, output_sum
from transformer.analysis.attention.cell_arithmetic import cell_arithmetic
from transformer.analysis.attention.query_arithmetic import query_arithmetic
from transformer.analysis.attention.score_rule import score_rule

SENTENCE = "The cat sat on the mat, and the dog slept."


@pytest.fixture(scope="module", params=list(FOREIGN))
def trace(request: pytest.FixtureRequest, family: Callable) -> transformer.Trace:
    checkpoint = family(request.param)
    sentence = SENTENCE.replace("cat", "___") if request.param in ("hf-bert", "hf-deberta") else SENTENCE
    target = "Le chat dort." if checkpoint.config.kind == "encoder-decoder" else None
    return transformer.trace(checkpoint, sentence, target)


def attentions(trace: transformer.Trace) -> list[tuple[str, int, str]]:
    places = [(stack, layer, kind) for stack in trace.stacks for layer in range(trace.n_layers(stack))
              for kind in ("self", "cross")]  # fmt: skip
    return [place for place in places if f"{place[0]}.layers.{place[1]}.{place[2]}_attention.scores" in trace]


def test_every_score_and_weight_is_what_the_models_own_rule_gives(trace: transformer.Trace) -> None:
    for place in attentions(trace):
        view = trace.attention(*place)
        for head in range(view.n_heads):
            path = attention_path(trace, *place, head=head)
            scores = path.rule.score(path.products, 0.0 if path.bias is None else path.bias)
            np.testing.assert_allclose(scores, path.scores, rtol=1e-4, atol=1e-4)
        last = len(view.query) - 1
        cell = cell_arithmetic(trace, *place, head=view.n_heads - 1, query=last, key=2)
        assert cell.score == pytest.approx(float(view.scores[-1, last, 2]), rel=1e-4, abs=1e-4)
        assert abs(cell.difference) < 1e-4
        assert cell.weights.sum() == pytest.approx(1.0)


def test_what_the_heads_write_adds_up_and_a_query_comes_from_what_attention_reads(trace: transformer.Trace) -> None:
    for place in attentions(trace):
        parts = output_sum(trace, *place, row=1)
        assert parts.error < 1e-4 * max(1.0, float(np.abs(parts.output).max()))
        found = query_arithmetic(trace, *place, head=1, row=0)  # at position 0 nothing is turned
        if not found.normalized:
            assert found.value == pytest.approx(found.recorded, rel=1e-4, abs=1e-4)


def test_the_rules_differ_as_the_families_do(family: Callable) -> None:
    def rule(name: str, layer: int = 0):
        checkpoint = family(name)
        return score_rule(checkpoint, "encoder" if checkpoint.config.has_encoder else "decoder", layer, "self")

    assert rule("hf-gpt2").is_of_the_paper and not rule("hf-gpt2").added
    assert not rule("hf-t5").is_scaled and rule("hf-t5").added == ("encoder.position_bias.values",)
    gemma = [rule("hf-gemma2", layer) for layer in (0, 1)]
    assert gemma[0].cap and {one.window for one in gemma} == {None, 6} and gemma[0].heads_a_key == 3
    assert rule("hf-deberta").radicand == 3 * rule("hf-deberta").d_head
    assert len(rule("hf-deberta").added) == 2
