"""Recording is neutral, edits do not outlive their block, and fast passes change nothing else."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest
import torch
from torch import nn

from tests.transformer.tiny import SOURCE, random_model, run
from transformer.config import NORMS, POSITIONS
from transformer.decoder import DecoderLayer
from transformer.fast.shortcut import fast_path, uses_fast_path
from transformer.fast.writing_steps import WritingLayer, WritingSteps
from transformer.models import Model
from transformer.probes import Edit, Probe, record
from transformer.runs.decoding_state import DecodingState
from transformer.runs.edits import check_edits

WEIGHTS = "decoder.layers.0.cross_attention.weights"


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
    assert len(recording.tensors) == len(model.probes)
    recording.tensors.clear()
    assert_untouched(model, plain)
    assert recording.tensors == {}


class Stop(BaseException):
    """Like Streamlit's RerunException: not a subclass of Exception."""


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, Stop])
def test_nothing_survives_an_exception_inside_an_edit_on_either_path(error: type[BaseException]) -> None:
    model = random_model()
    plain = run(model)

    def fail(tensor: torch.Tensor) -> torch.Tensor:
        assert uses_fast_path() is False, "a recording takes the readable path"
        raise error

    edits = [Edit("encoder.layers.0.self_attention.context", torch.zeros_like), Edit(WEIGHTS, fail)]
    for path in (nullcontext, fast_path):
        with pytest.raises(error), path(), record(edits):
            run(model)
        assert not uses_fast_path()
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


# ---- what users of PyTorch rely on -----------------------------------------------------------------------------------


def test_a_probe_runs_all_its_forward_hooks_in_order_and_takes_what_they_return() -> None:
    probe = Probe("position")
    seen = []
    probe.register_forward_hook(lambda module, inputs, output: seen.append(float(output)))
    doubling = probe.register_forward_hook(lambda module, inputs, output: output * 2)
    probe.register_forward_hook(lambda module, inputs, output: seen.append(float(output)))
    assert probe(torch.tensor(3.0)) == 6.0
    assert seen == [3.0, 6.0]
    doubling.remove()
    assert probe(torch.tensor(3.0)) == 3.0


def test_a_part_that_is_deleted_is_gone() -> None:
    model = random_model.__wrapped__()
    del model.decoder.layers[0].cross_attention.value_projection
    with pytest.raises(AttributeError, match="value_projection"):
        run(model)


def test_a_copied_model_is_a_model_of_its_own() -> None:
    model = random_model()
    plain = run(model)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(run(twin), plain)
        assert twin.decoder.layers[0].feed_forward is not model.decoder.layers[0].feed_forward
        assert twin.decoder.layers[0].feed_forward is twin.get_submodule("decoder.layers.0.feed_forward")
        with torch.no_grad():
            twin.decoder.layers[0].feed_forward.output_projection.weight.add_(1.0)
        assert not torch.equal(run(twin), plain)
        assert torch.equal(run(model), plain)


def test_a_copy_to_look_at_shares_the_weights_and_nothing_else() -> None:
    model = random_model()
    twin = model.copy_sharing_weights(lambda name: name.endswith("bias"))
    seen = []
    twin.decoder.register_forward_hook(lambda *_: seen.append(True))
    assert torch.equal(run(model), run(twin)) and seen == [True]
    for (name, own), shared in zip(model.named_parameters(), twin.parameters(), strict=True):
        assert shared is not own and shared.data_ptr() == own.data_ptr()
        assert shared.requires_grad == name.endswith("bias")


def test_dropout_drops_while_training_only() -> None:
    torch.manual_seed(0)
    dropout, x = random_model.__wrapped__(dropout=0.25).train().decoder.layers[0].dropout, torch.ones(10_000)
    torch.manual_seed(0)
    dropped = dropout(x)
    assert float((dropped == 0).float().mean()) == pytest.approx(0.25, abs=0.02)
    assert dropped.unique().tolist() == pytest.approx([0.0, 1 / 0.75])
    torch.manual_seed(0)
    assert torch.equal(dropped, nn.Dropout(0.25)(x)), "a resumed training draws what torch's own dropout draws"
    assert dropout.eval()(x) is x


IDS = torch.tensor([[1, 7, 19, 11], [1, 12, 12, 3]])
SOURCES = torch.cat((SOURCE, torch.tensor([[8, 4, 2, 0, 0, 0]])))  # the second is padded


def last_logits(model: Model, *, cached: bool, path: Callable[[], AbstractContextManager] = fast_path) -> torch.Tensor:
    """Return the logits after the fourth token, generated token by token or in one pass of the modules."""
    source = SOURCES if model.config.has_encoder else None
    with torch.inference_mode(), path():
        state = DecodingState(model, source, cached=cached)
        if not cached:
            return state.feed(IDS)
        return [state.feed(IDS[:, t : t + 1]) for t in range(4)][-1]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("kind", ["encoder-decoder", "decoder-only"])
def test_our_own_layers_are_all_taken_apart(kind: str, positions: str, norm: str) -> None:
    model = random_model(kind, positions=positions, norm=norm)
    assert {type(layer) for layer in WritingSteps(model.decoder).layers} == {WritingLayer}
    whole = last_logits(model, cached=False)
    for path in (fast_path, nullcontext):
        torch.testing.assert_close(last_logits(model, cached=True, path=path), whole, rtol=0, atol=1e-5)
    with torch.inference_mode():  # a block, then one position, both on the readable path
        state = DecodingState(model, SOURCES if model.config.has_encoder else None)
        state.feed_all(IDS[:, :3])
        torch.testing.assert_close(state.feed(IDS[:, 3:]), whole, rtol=0, atol=1e-5)
    assert torch.equal(state.ids, IDS) and state.cache.length == 4


class Doubled(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(x)


class Turned(DecoderLayer):
    def forward(self, *args: object) -> torch.Tensor:
        return super().forward(*args).flip(-1)


MATRICES = ("query_projection", "key_projection", "value_projection", "output_projection")
PARTS = [
    *(f"{kind}_attention.{matrix}" for kind in ("self", "cross") for matrix in MATRICES),
    *("feed_forward.input_projection", "feed_forward.output_projection", "feed_forward_norm", ""),
]


@pytest.mark.parametrize("name", PARTS)
def test_a_part_that_is_replaced_is_the_one_that_writes(name: str) -> None:
    """Matrices, norms and whole layers."""
    model = random_model.__wrapped__("encoder-decoder")
    plain, before = last_logits(model, cached=True), model.decoder.layers[1].get_submodule(name)
    if name.endswith("projection"):
        part = Doubled(before.in_features, before.out_features)
    else:
        part = nn.Identity() if name else Turned(model.config).eval()
    part.load_state_dict(before.state_dict(), strict=name != "feed_forward_norm")
    model.decoder.layers.set_submodule(f"1.{name}".rstrip("."), part)
    written = last_logits(model, cached=True)
    torch.testing.assert_close(written, last_logits(model, cached=False), rtol=0, atol=1e-5)
    assert not torch.allclose(written, plain, atol=1e-3)


@pytest.mark.parametrize(
    "name", ["decoder", "decoder.layers.1", "decoder.layers.0.feed_forward", "decoder.layers.0.residual.out"]
)
def test_a_forward_hook_on_any_module_sees_and_changes_every_step(name: str) -> None:
    model, seen = random_model.__wrapped__("decoder-only"), []
    plain = last_logits(model, cached=True)
    hook = lambda module, inputs, output: seen.append(1) or output.flip(-1)  # noqa: E731
    model.get_submodule(name).register_forward_hook(hook)
    written = last_logits(model, cached=True)
    assert len(seen) == IDS.shape[1]
    torch.testing.assert_close(written, last_logits(model, cached=False), rtol=0, atol=1e-5)
    assert not torch.allclose(written, plain, atol=1e-3)


def test_a_model_in_training_drops_while_it_writes() -> None:
    model = random_model.__wrapped__("decoder-only", dropout=0.5)
    plain = last_logits(model, cached=True)
    model.train()
    dropped = [last_logits(model, cached=True) for _ in range(2)]
    assert not torch.allclose(dropped[0], dropped[1])
    assert torch.equal(last_logits(model.eval(), cached=True), plain)
