"""What holds for the numbers of every kind of model, our own and those that are built otherwise."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

import transformer
from tests.foreign_checkpoints import FOREIGN
from transformer.attention_maps.attention_arithmetic import query_arithmetic, score_rule
from transformer.attention_maps.attention_path import attention_path, norm_weighted, output_sum
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
from transformer.layers.norms import add_and_norm, norm_kind, norm_names, norm_parameters, norm_steps
from transformer.layers.residual_stream import additions, contributions, stream_lengths, sublayers
from transformer.predictions.answer_probabilities import softmax
from transformer.predictions.lens import logit_lens
from transformer.runs.head_places import all_heads
from transformer.runs.recording_size import probe_bytes

SENTENCE = "The cat sat on the mat, and the dog slept."


@pytest.fixture(scope="module", params=[*FOREIGN, "tiny-translator", "tiny-gpt", "tiny-bert", "tiny-sentiment"])
def trace(request: pytest.FixtureRequest, guest: Callable, tiny_checkpoint: Callable) -> transformer.Trace:
    checkpoint = (tiny_checkpoint if request.param.startswith("tiny-") else guest)(request.param)
    sentence = SENTENCE.replace("cat", "___") if request.param.endswith("-bert") else SENTENCE
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
            bias = 0.0 if path.bias is None else path.bias
            np.testing.assert_allclose(path.rule.score(path.products, bias), path.scores, rtol=1e-4, atol=1e-4)
            np.testing.assert_allclose(path.weights @ path.value, path.context, rtol=1e-4, atol=1e-5)
        n_rows, n_keys = view.allowed.shape
        for query, key in product((0, n_rows // 2, n_rows - 1), range(n_keys)):
            cell = path.cell(query=query, key=key)
            assert cell.score == pytest.approx(float(view.scores[-1, query, key]), rel=1e-4, abs=1e-4)
            assert cell.recorded == view.weights[-1, query, key] and abs(cell.difference) < 1e-4
            assert cell.is_allowed == view.allowed[query, key] and (cell.is_allowed or cell.weight == 0.0)
            assert cell.products.sum() == pytest.approx(cell.dot_product)
        row = len(view.query) - 1
        unscaled = path.rule.score(path.products[row], bias if path.bias is None else bias[row]) / path.rule.scale
        if path.bias is None and path.rule.cap is None:
            powers = np.exp(unscaled - unscaled.max()) * view.allowed[row]
            np.testing.assert_allclose(path.weights_without_scaling(row), powers / powers.sum(), rtol=1e-3, atol=1e-5)
        matrix = trace.checkpoint.model.get_submodule(view.name).output_projection.weight.detach().numpy()
        added = matrix[:, -path.d_head :] @ (path.weights[row, 1] * path.value[1])
        assert norm_weighted(trace, *place)[-1, row, 1] == pytest.approx(np.linalg.norm(added), rel=1e-4, abs=1e-7)


@pytest.mark.parametrize(("wrong", "message"), [({"head": 9}, "no head 9"), ({"key": 99}, "no key token 99")])
def test_a_cell_that_is_not_there_is_refused(tiny_checkpoint: Callable, wrong: dict, message: str) -> None:
    trace = transformer.trace(tiny_checkpoint("bert"), SENTENCE)
    with pytest.raises(ValueError, match=message):
        attention_path(trace, "encoder", 0, "self", head=wrong.pop("head", 0)).cell(**{"query": 0, "key": 0, **wrong})


def test_what_the_heads_write_adds_up_and_a_query_comes_from_what_attention_reads(trace: transformer.Trace) -> None:
    for place in attentions(trace):
        parts = output_sum(trace, *place, row=1)
        assert parts.error < 1e-4 * max(1.0, float(np.abs(parts.output).max()))
        found = query_arithmetic(trace, *place, head=1, row=0)  # at position 0 nothing is rotated
        if not found.normalized:
            assert found.value == pytest.approx(found.recorded, rel=1e-4, abs=1e-4)


def test_the_rules_differ_as_the_families_do(guest: Callable) -> None:
    def rule(name: str, layer: int = 0):
        checkpoint = guest(name)
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
            if not rms:
                other = steps.gain * (steps.x - steps.x.mean()) / (steps.x.std() + steps.epsilon) + steps.bias
                np.testing.assert_allclose(steps.textbook, other, atol=1e-5)
                assert 0 < steps.textbook_difference < 1e-2
            np.testing.assert_allclose(steps.columns(0, 4)["output"], steps.output[:4])


def test_what_is_added_to_the_stream_is_what_it_grows_by(trace: transformer.Trace) -> None:
    for stack in trace.stacks:
        steps = sublayers(trace, stack)
        for step, sums in zip(steps, additions(trace, stack, 1), strict=True):
            assert sums.largest_deviation < 1e-5 * np.abs(trace.values(step.after)).max() + 1e-5, step.label
        for earlier, later in zip(steps, steps[1:], strict=False):
            np.testing.assert_array_equal(trace.values(earlier.after), trace.values(later.before))
        if not trace.checkpoint.model.is_guest:
            np.testing.assert_array_equal(trace.values(steps[0].before), trace.values(f"{stack}.embedding.sum"))
        names, lengths = stream_lengths(trace, stack)
        assert names[1:] == tuple(step.label for step in steps) == contributions(trace, stack)[0]
        assert lengths[1, 2] == pytest.approx(np.sqrt((trace.values(steps[0].after)[2] ** 2).sum()), rel=1e-6)
        added, last = additions(trace, stack, 1)[-1], steps[-1]
        before, update = trace.values(last.before)[1], trace.values(last.update)[1]
        assert (added.before, added.update) == pytest.approx((np.linalg.norm(before), np.linalg.norm(update)))
        _, ratio, cosine = contributions(trace, stack)
        assert ratio[-1, 1] == pytest.approx(added.update / added.before, rel=1e-5) and np.abs(cosine).max() <= 1.0
        assert cosine[-1, 1] == pytest.approx(before @ update / (added.update * added.before), abs=1e-5)


def test_sublayers_follow_the_forward_pass(tiny_checkpoint: Callable) -> None:
    steps = sublayers(transformer.trace(tiny_checkpoint("translator"), SENTENCE), "decoder")
    kinds = ["self-attention", "cross-attention", "feed-forward"]
    assert [step.label for step in steps] == [f"{layer} {kind}" for layer in range(2) for kind in kinds]


def test_additions_and_norms_of_a_token_are_in_the_order_of_the_model(trace: transformer.Trace) -> None:
    order = trace.checkpoint.config.norm
    for stack in trace.stacks:
        for layer in range(trace.n_layers(stack)):
            for name in norm_names(trace, stack, layer):
                halves = add_and_norm(trace, stack, layer, name, 2)
                assert any(half.norm == name for half in halves)
                inside, kinds = halves[0].sublayer != "", [half.kind for half in halves]
                assert inside == name.startswith(f"{stack}.layers.")
                if inside:
                    assert kinds == ["add", "norm"] if order == "post" else (kinds[0], kinds[-1]) == ("norm", "add")
                for half in halves:
                    if half.kind == "add":
                        first, update, total = half.vectors.values()
                        np.testing.assert_allclose(first + update, total, atol=1e-4)
                    else:
                        gain, bias, _ = norm_parameters(trace.checkpoint, half.norm)
                        scaled = half.vectors["normalized"] * gain + (0 if bias is None else bias)
                        np.testing.assert_allclose(scaled, half.vectors["scaled"], atol=1e-4)
                if inside and order == "post":
                    into = trace.values(f"{halves[1].norm}.input")[2]
                    np.testing.assert_array_equal(halves[0].vectors["sum"], into)
                elif inside and "x" in halves[-1].vectors:
                    np.testing.assert_array_equal(halves[-1].vectors["x"], halves[0].vectors["x"])
    first, *_, last = add_and_norm(trace, trace.stacks[0], 0, f"{trace.stacks[0]}.layers.0.feed_forward_norm", 2)
    assert ("x_and_attention" in (first.vectors | last.vectors)) == (trace.checkpoint.name == "hf-neox")


def test_two_norms_around_a_sublayer_and_the_update_is_behind_the_second(guest: Callable) -> None:
    trace = transformer.trace(guest("hf-gemma2"), SENTENCE)
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


def test_units_are_read_as_words_only_where_that_is_linear(guest: Callable) -> None:
    for name in FOREIGN:
        checkpoint = guest(name)
        stack = "decoder" if checkpoint.config.has_decoder else "encoder"
        assert (why_no_words(checkpoint, stack) is not None) == (name == "hf-bert"), name
    trace = transformer.trace(guest("hf-gemma2"), SENTENCE)
    assert unit_words(trace, "decoder", 0, 1, units=[3])[0].logits


@pytest.mark.parametrize("sublayers", [False, True])
def test_the_last_row_of_the_lens_is_what_the_model_says(trace: transformer.Trace, sublayers: bool) -> None:
    lens, config = logit_lens(trace, sublayers=sublayers, candidates=400), trace.checkpoint.config
    logits = trace.values("classifier.logits" if config.n_classes else f"{lens.stack}.logits").astype(np.float64)
    expected = softmax(np.atleast_2d(logits))  # of a classifier, the first row is about the whole sentence
    ids, found = (values[-1, : len(expected)] for values in (lens.ids, lens.probabilities))
    np.testing.assert_allclose(found, np.take_along_axis(expected, ids, axis=-1), atol=1e-5)
    np.testing.assert_array_equal(ids[:, 0], expected.argmax(axis=-1))
    assert ids.shape[1] == min(400, expected.shape[1])
    if trace.checkpoint.name.startswith("hf-") and config.n_classes:  # its head reads the first token alone
        np.testing.assert_allclose(lens.probabilities[-1, 0], lens.probabilities[-1, 1], atol=1e-6)


def test_every_stack_has_its_own_number_of_heads(guest: Callable) -> None:
    checkpoint = guest("hf-marian")
    trace = transformer.trace(checkpoint, SENTENCE, "Le chat dort.")
    places = all_heads(checkpoint.config)
    for stack, layer, kind in attentions(trace):
        heads = [place for place in places if (place.stack, place.layer, place.kind) == (stack, layer, kind)]
        assert len(heads) == trace.attention(stack, layer, kind).n_heads == checkpoint.config.heads_in(stack)
    assert len(head_importance(trace).measured) == len(places)


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
        assert len({(block.stack, block.layer, block.part) for block in step.blocks}) == len(step.blocks)
        assert {block.part for block in step.blocks if block.layer is not None} >= {"self_attention", "norms"}
        for block in step.blocks:
            assert block.moved == pytest.approx(0.01 * block.gradient, rel=1e-2, abs=1e-5), block.part
            assert block.gradient > 0 or model.is_guest


def test_the_memory_of_a_pass_is_known_before_it_runs_and_every_number_is_finite(trace: transformer.Trace) -> None:
    lengths = [len(read) if read is not None else 0 for read in (trace.source, trace.target)]
    measured, known = trace.activations.n_bytes, sum(probe_bytes(trace.checkpoint.model, *lengths).values())
    assert measured <= known <= (1.15 if trace.checkpoint.model.is_guest else 1) * measured, "derived norms take none"
    assert trace.first_not_finite is None


def test_every_parameter_is_counted_with_the_part_that_it_belongs_to(trace: transformer.Trace) -> None:
    model = trace.checkpoint.model
    costs = parameter_costs(model)
    assert costs.total() == sum(p.numel() for p in model.parameters()) and not costs[REST]
    norms = {type(module).__name__ for module in model.modules()} & {"LayerNorm", "RMSNorm"}
    assert norms <= costs.keys() | {"LayerNorm"}
