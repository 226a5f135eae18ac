"""Recording is neutral, edits do what they say, and neither outlives its block."""

from __future__ import annotations

import pytest
import torch

from tests.transformer.tiny import random_model, run
from transformer.config import NORMS, POSITIONS
from transformer.fast.shortcut import fast_path, uses_fast_path
from transformer.probes import Edit, Probe, name_probes, record
from transformer.runs.edits import check_edits

KINDS = ("encoder-decoder", "decoder-only", "encoder-only")
WEIGHTS = "decoder.layers.0.cross_attention.weights"


CASES = [(k, p, NORMS[(i + j) % 2]) for i, k in enumerate(KINDS) for j, p in enumerate(POSITIONS)]


@pytest.mark.parametrize(("kind", "positions", "norm"), CASES)
def test_logits_are_bitwise_equal_with_and_without_recording(kind: str, positions: str, norm: str) -> None:
    model = random_model(kind, positions=positions, norm=norm)
    plain = run(model)
    with record() as recording:
        watched = run(model)
    assert torch.equal(plain, watched)
    assert torch.equal(recording.tensors["encoder.logits" if kind == "encoder-only" else "decoder.logits"], plain)
    assert torch.equal(run(model), plain)


def test_an_edit_that_changes_nothing_is_neutral_at_every_probe() -> None:
    model = random_model(positions="relative")
    with record(Edit(name, torch.clone) for name in model.probes) as recording:
        edited = run(model)
    assert torch.equal(edited, run(model))
    assert set(recording.tensors) == set(model.probes)


def test_an_edit_at_any_probe_reaches_the_logits() -> None:
    """No probe is a dead end: the model continues with the recorded value."""
    model = random_model(positions="relative")
    plain = run(model)
    for name in model.probes:
        change = torch.logical_not if name.endswith("allowed") else lambda tensor: tensor * 1.5 + 0.25
        with record([Edit(name, change)]):
            changed = run(model)
        # A score or key bias that is the same for all keys cancels in the softmax, so those are multiplied as well.
        assert not torch.equal(changed, plain), f"an edit of {name} changes nothing"


def test_the_recording_shows_the_edited_tensor() -> None:
    model = random_model()
    with record([Edit(WEIGHTS, torch.zeros_like)]) as recording:
        run(model)
    assert (recording.tensors[WEIGHTS] == 0).all()
    assert (recording.tensors[WEIGHTS.replace("weights", "context")] == 0).all()


def test_only_what_is_named_is_kept_and_edits_work_as_ever() -> None:
    model = random_model()
    edit = Edit("encoder.layers.0.self_attention.output", torch.zeros_like)
    with record([edit]) as everything:
        wanted = run(model)
    with record([edit], names={WEIGHTS}) as named:
        found = run(model)
    assert torch.equal(found, wanted) and list(named.tensors) == [WEIGHTS]
    assert torch.equal(named.tensors[WEIGHTS], everything.tensors[WEIGHTS])
    with record([edit], names=()) as nothing:
        assert torch.equal(run(model), wanted) and not nothing.tensors


def test_edits_of_one_probe_are_applied_in_order() -> None:
    model = random_model()
    edits = [Edit(WEIGHTS, torch.zeros_like), Edit(WEIGHTS, lambda weights: weights + 3)]
    with record(edits) as recording:
        run(model)
    assert (recording.tensors[WEIGHTS] == 3).all()


def assert_untouched(model: torch.nn.Module, plain: torch.Tensor) -> None:
    assert torch.equal(run(model), plain)
    with record() as recording:
        assert torch.equal(run(model), plain)
    assert (recording.tensors[WEIGHTS] != 0).any()


def test_nothing_survives_the_block() -> None:
    model = random_model()
    plain = run(model)
    with record([Edit(WEIGHTS, torch.zeros_like)]) as recording:
        assert not torch.equal(run(model), plain)
    n_recorded = len(recording.tensors)
    recording.tensors.clear()
    assert_untouched(model, plain)
    assert recording.tensors == {}
    assert n_recorded == len(model.probes)


class Stop(BaseException):
    """Like Streamlit's RerunException: not a subclass of Exception."""


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, Stop])
def test_nothing_survives_an_exception_in_the_block(error: type[BaseException]) -> None:
    model = random_model()
    plain = run(model)
    with pytest.raises(error), record([Edit(WEIGHTS, torch.zeros_like)]):
        run(model)
        raise error
    assert_untouched(model, plain)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, Stop])
def test_nothing_survives_an_exception_inside_an_edit(error: type[BaseException]) -> None:
    model = random_model()
    plain = run(model)

    def fail(tensor: torch.Tensor) -> torch.Tensor:
        raise error

    edits = [Edit("encoder.layers.0.self_attention.context", torch.zeros_like), Edit(WEIGHTS, fail)]
    with pytest.raises(error), record(edits):
        run(model)
    assert_untouched(model, plain)


def test_nothing_survives_an_exception_on_the_fast_path() -> None:
    model = random_model()
    with pytest.raises(RuntimeError), fast_path():
        assert uses_fast_path()
        raise RuntimeError
    assert not uses_fast_path()
    plain = run(model)
    with fast_path():
        run(model)
    assert_untouched(model, plain)


def test_recordings_nest() -> None:
    model = random_model()
    plain = run(model)
    with record([Edit(WEIGHTS, torch.zeros_like)]) as outer:
        with record() as inner:
            assert torch.equal(run(model), plain)
        assert outer.tensors == {}
        assert not torch.equal(run(model), plain)
    assert (inner.tensors[WEIGHTS] != 0).any()
    assert (outer.tensors[WEIGHTS] == 0).all()


def test_a_recording_takes_the_readable_path_even_where_the_fast_one_is_allowed() -> None:
    model = random_model()
    plain = run(model)
    with fast_path(), record() as recording:
        assert torch.equal(run(model), plain)
    assert set(recording.tensors) == set(model.probes)


def test_an_edit_that_changes_the_shape_is_refused_with_both_shapes() -> None:
    model = random_model()
    with (
        pytest.raises(ValueError, match=rf"{WEIGHTS} returned shape \(1, 2, 4, 5\) .* shape \(1, 2, 4, 6\)"),
        record([Edit(WEIGHTS, lambda weights: weights[..., :-1])]),
    ):
        run(model)


def test_an_edit_of_something_that_is_not_there_is_refused() -> None:
    model = random_model()
    with pytest.raises(ValueError, match=r"no activation 'decoder\.layers\.0\.cross_atention\.weights'") as caught:
        check_edits(model.probes, [Edit("decoder.layers.0.cross_atention.weights", torch.clone)])
    assert WEIGHTS in str(caught.value), "the message names what was probably meant"
    assert len(str(caught.value)) < 400, "two hundred names are no help"


def test_names_are_module_paths() -> None:
    model = random_model()
    assert all(model.get_submodule(name) is probe for name, probe in model.probes.items())
    assert all(probe.name == name for name, probe in model.probes.items())
    assert name_probes(model) == model.probes


def test_a_probe_passes_its_very_tensor_through() -> None:
    tensor = torch.randn(1, 2)
    probe = Probe("position")
    assert probe(tensor) is tensor
    with record() as recording:
        assert probe(tensor) is tensor
    assert recording.tensors[""] is tensor
