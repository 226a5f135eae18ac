"""Results of the pages for models that are not built as the paper's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import transformer
from tests.foreign_checkpoints import FOREIGN
from transformer.attention_maps.attention_arithmetic import cell_arithmetic, query_arithmetic, score_rule
from transformer.attention_maps.attention_path import attention_path, output_sum
from transformer.interventions.head_importance import head_importance
from transformer.layers.costs import REST, parameter_costs
from transformer.layers.feed_forward_units import (
    direct_path,
    norms_on_the_way,
    output_vectors,
    unit_words,
    vocabulary_matrix,
    why_no_words,
)
from transformer.layers.gradient_step import training_step
from transformer.layers.norms import norm_kind, norm_names, norm_steps
from transformer.layers.positional_encodings import without_positions
from transformer.layers.residual_stream import additions, residual_identity, stream_lengths, sublayers
from transformer.predictions.lens import logit_lens
from transformer.runs.head_places import all_heads

SENTENCE = "The cat sat on the mat, and the dog slept."


@pytest.fixture(scope="module", params=list(FOREIGN))
def trace(request: pytest.FixtureRequest, family: Callable) -> transformer.Trace:
    checkpoint = family(request.param)
    sentence = SENTENCE.replace("cat", "___") if request.param == "hf-bert" else SENTENCE
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
        found = query_arithmetic(trace, *place, head=1, row=0)  # at position 0 nothing is rotated
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


def test_every_norm_worked_out_by_hand_is_the_recorded_one(trace: transformer.Trace) -> None:
    rms = getattr(trace.checkpoint.config, "rms_norm", False)
    for stack in trace.stacks:
        for name in norm_names(trace, stack, 0):
            steps = norm_steps(trace, name, 2)
            assert steps.largest_deviation < 1e-4 * max(1.0, float(np.abs(steps.output).max())), name
            assert (steps.mean is None, steps.bias is None) == (rms, rms)
            assert norm_kind(trace.checkpoint, name) == ("RMSNorm" if rms else "LayerNorm")
            assert steps.denominator == pytest.approx(np.sqrt(steps.std**2 + steps.epsilon), rel=1e-4)
            np.testing.assert_allclose(steps.columns(0, 4)["output"], steps.output[:4])


def test_what_is_added_to_the_stream_is_what_it_grows_by(trace: transformer.Trace) -> None:
    norm = trace.checkpoint.config.norm
    for stack in trace.stacks:
        for step in sublayers(trace, stack):
            identity = residual_identity(trace, step, norm=norm)
            assert identity.largest_deviation < 1e-5 * np.abs(identity.total).max(), step.label
        assert len(additions(trace, stack, 1, norm=norm)) + 1 == len(stream_lengths(trace, stack)[0])


def test_two_norms_around_a_sublayer_and_the_update_is_behind_the_second(family: Callable) -> None:
    trace = transformer.trace(family("hf-gemma2"), SENTENCE)
    assert sublayers(trace, "decoder")[0].update == "decoder.layers.0.self_attention_output_norm.output"
    assert len([name for name in norm_names(trace, "decoder", 0) if ".layers." in name]) == 4


def test_all_parts_on_the_direct_path_add_up_to_the_logits(trace: transformer.Trace) -> None:
    """The stream before the last feed-forward layer, all units, b₂ and β add up to the logits."""
    checkpoint = trace.checkpoint
    stack = "decoder" if checkpoint.config.has_decoder else "encoder"
    writes = vocabulary_matrix(checkpoint, stack)[1] if why_no_words(checkpoint, stack) is None else False
    if not writes:
        assert checkpoint.config.kind == "encoder-only"
        return
    layer, position = trace.n_layers(stack) - 1, 3
    step = sublayers(trace, stack)[-1]
    added = trace.values(f"{stack}.layers.{layer}.feed_forward.hidden")[position, :, None]
    units = added * output_vectors(checkpoint, stack, layer, range(len(added)))
    bias = checkpoint.model.get_submodule(f"{stack}.layers.{layer}.feed_forward.output_projection").bias
    if bias is not None:
        units = np.vstack([units, bias.detach().numpy()])
    names, final = norms_on_the_way(trace, stack, layer), checkpoint.model.get_submodule(stack).final_norm
    sent = direct_path(trace, stack, layer, position, units).sum(axis=0)
    before = trace.values(step.before)[position]
    last = norm_steps(trace, names[-1], position)
    centre = before.mean() if last.mean is not None else 0.0
    sent = sent + last.gain * (before - centre) / last.denominator + (0.0 if last.bias is None else last.bias)
    projection = checkpoint.model.get_submodule(f"{stack}.vocabulary_projection")
    logits = vocabulary_matrix(checkpoint, stack)[0] @ sent
    logits = logits if projection.bias is None else logits + projection.bias.detach().numpy()
    if cap := getattr(projection, "cap", None):
        logits = cap * np.tanh(logits / cap)
    recorded = trace.values(f"{stack}.logits")[position]
    np.testing.assert_allclose(logits, recorded, atol=1e-3 * np.abs(recorded).max())
    assert (final is None) == (checkpoint.config.norm == "post")


def test_units_are_read_as_words_only_where_that_is_linear(family: Callable) -> None:
    for name in FOREIGN:
        checkpoint = family(name)
        stack = "decoder" if checkpoint.config.has_decoder else "encoder"
        assert (why_no_words(checkpoint, stack) is not None) == (name == "hf-bert"), name
    trace = transformer.trace(family("hf-gemma2"), SENTENCE)
    assert unit_words(trace, "decoder", 0, 1, units=[3])[0].logits


def test_the_last_row_of_the_lens_is_what_the_model_says(trace: transformer.Trace) -> None:
    lens, config = logit_lens(trace, candidates=3), trace.checkpoint.config
    logits = trace.values("classifier.logits" if config.n_classes else f"{lens.stack}.logits").astype(np.float64)
    logits = np.atleast_2d(logits)
    probabilities = np.exp(logits - logits.max(axis=-1, keepdims=True))
    probabilities /= probabilities.sum(axis=-1, keepdims=True)
    found = lens.probabilities[-1][: len(logits)]
    np.testing.assert_allclose(found, -np.sort(-probabilities, axis=-1)[:, : found.shape[-1]], atol=1e-5)
    if config.n_classes:  # the head reads the first token, so the whole sentence is in its column
        np.testing.assert_allclose(lens.probabilities[-1, 0], lens.probabilities[-1, 1], atol=1e-6)


def test_every_stack_has_its_own_number_of_heads(family: Callable) -> None:
    checkpoint = family("hf-marian")
    trace = transformer.trace(checkpoint, SENTENCE, "Le chat dort.")
    places = all_heads(checkpoint.config)
    for stack, layer, kind in attentions(trace):
        heads = [place for place in places if (place.stack, place.layer, place.kind) == (stack, layer, kind)]
        assert len(heads) == trace.attention(stack, layer, kind).n_heads == checkpoint.config.heads_in(stack)
    assert len(head_importance(trace).measured) == len(places)


@pytest.mark.parametrize("name", ["hf-llama", "hf-gemma2", "hf-neox"])
def test_taking_the_turn_off_gives_what_the_projection_gave(family: Callable, name: str) -> None:
    """Base, width and scaling of the layer's own rotary encoding; channels outside the rotation stay."""
    checkpoint = family(name)
    edits = without_positions(checkpoint.model, "decoder")
    trace = transformer.trace(checkpoint, SENTENCE, edits=edits)
    for row in (1, 4):
        found = query_arithmetic(trace, "decoder", 0, "self", head=1, row=row)
        assert found.value == pytest.approx(found.recorded, rel=1e-3, abs=1e-3)


def test_a_training_step_moves_e_by_its_two_ways(trace: transformer.Trace) -> None:
    model = trace.checkpoint.model
    for stack in trace.stacks:
        step = training_step(trace, stack=stack, rate=0.01)
        np.testing.assert_allclose(step.moved, 0.01 * step.gradient, atol=1e-6)
        rows = sorted(set(step.read.ids))
        assert set(np.flatnonzero(step.by_lookup)) <= set(rows)
        if step.tied:
            assert (step.moved <= step.by_lookup + step.by_projection + 1e-6).all()
        else:
            np.testing.assert_allclose(step.moved, step.by_lookup, atol=1e-6)
        trained = [p for name, p in model.named_parameters() if not name.startswith("next_sentence.")]
        assert sum(block.numbers for block in step.blocks) == sum(p.numel() for p in trained)


def test_every_parameter_is_counted_with_the_part_that_it_belongs_to(trace: transformer.Trace) -> None:
    model = trace.checkpoint.model
    costs = parameter_costs(model)
    assert sum(cost.parameters for cost in costs) == sum(p.numel() for p in model.parameters())
    assert [cost for cost in costs if cost.part == REST and cost.parameters] == []
    norms = {type(module).__name__ for module in model.modules()} & {"LayerNorm", "RMSNorm"}
    assert norms <= {cost.part for cost in costs} | {"LayerNorm"}
