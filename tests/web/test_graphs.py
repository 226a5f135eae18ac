"""The exported graphs compute the numbers of the figures as torch does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import transformer
from charts.canvas.living_picture_canvas import living_picture_canvas
from transformer.files.checkpoints import Checkpoint
from transformer.predictions.living_picture_numbers import living_picture_numbers
from transformer.runs.edit_specs import edits_from
from transformer.runs.traces import Trace
from web import graphs
from web.graphs import WEIGHTS

CHECKPOINTS = Path(__file__).resolve().parents[2] / "checkpoints"
TOLERANCE = 2e-5


class Exported:
    """Run a checkpoint's graphs in ONNX Runtime, as the browser does."""

    def __init__(self, checkpoint: Checkpoint, folder: Path, out: Path) -> None:
        self.checkpoint = checkpoint
        (out / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes())
        self.graphs = {graph.stack: graph for graph in graphs.graphs_of(checkpoint, folder)}
        self.sessions = {}
        for stack, graph in self.graphs.items():
            (out / f"{stack}.onnx").write_bytes(graph.onnx)
            self.sessions[stack] = onnxruntime.InferenceSession(out / f"{stack}.onnx")

    def run(self, trace: Trace, changes: dict[str, np.ndarray] | None = None) -> dict[str, np.ndarray]:
        """Return every array that the graphs compute for the tokens of ``trace``."""
        config, found = self.checkpoint.config, {}
        for stack, session in self.sessions.items():
            feeds = {f"{stack}.ids": np.array([trace.tokens(stack).ids])}
            for kind in ("self", "cross"):
                feeds[f"{stack}.{kind}.heads"] = np.ones((trace.n_layers(stack), config.n_heads), np.float32)
            length = 1 if config.n_classes else len(trace.tokens(stack))
            feeds["chosen"] = np.array([trace.prediction.ids if trace.prediction else [-1] * length])
            feeds |= {name: found[name] for name in ("memory", "sinks") if name in found} | (changes or {})
            read = self.graphs[stack].inputs
            values = session.run(None, {name: feeds[name] for name in read})
            found |= dict(zip(self.graphs[stack].outputs, values, strict=True))
        return found


def differences(trace: Trace, found: dict[str, np.ndarray]) -> dict[str, float]:
    """Return the largest difference between each array of the living picture and the graphs' own."""
    layers = [(stack, layer) for stack in trace.stacks for layer in range(trace.n_layers(stack))]
    picture = living_picture_numbers(trace, inside=layers)
    drawn = living_picture_canvas(picture).arrays
    apart = {}
    for name, values in drawn.items():
        stack, kind, *what = name.split(".")
        if stack == "written" or kind == "units":  # units of equal strength may be swapped
            continue
        if what in (["allowed"], ["weights"]):  # packed in bits, or units of 1/65535
            attention = next(one for one in picture.attentions if (one.stack, one.kind) == (stack, kind))
            values = getattr(attention, what[0])
        assert found[name].shape == values.shape, name
        apart[name] = float(np.abs(found[name].astype(float) - values.astype(float)).max())
    for row in picture.written:
        at = 0 if trace.checkpoint.config.n_classes else row.position
        assert found["written.chosen"][at] == row.chosen
        for part in ("log_sum", "logits", "probabilities"):
            listed = np.sort(np.atleast_1d(found[f"written.{part}"][at])) - np.sort(np.atleast_1d(getattr(row, part)))
            apart[part] = max(apart.get(part, 0), float(np.abs(listed).max()))
        taken = row.logits[row.chosen] - row.log_sum
        apart["log p"] = max(apart.get("log p", 0), abs(float(found["chosen.log_probability"][at] - taken)))
        if "step.ids" in found:
            listed = found["step.probabilities"][at]
            apart["rest"] = max(apart.get("rest", 0), abs(1 - float(listed.sum() + found["step.rest"][at])))
            logits = trace.values("decoder.logits")[at]
            better = [
                id for id in np.flatnonzero(logits > row.logits[row.chosen]) if id not in trace.checkpoint.framing.never
            ]
            assert found["step.rank"][at] == 1 + len(better)
    for stack, kind in trace.attention_kinds():
        for layer in range(trace.n_layers(stack)):
            view = trace.attention(stack, layer, kind)
            pairs = [view.strongest_pair(head) or (0, 0) for head in range(view.n_heads)]
            assert found[f"strongest.{stack}.{kind}"][layer].tolist() == [row for row, _ in pairs]
            if stack == "decoder":
                mean = found[f"mean.{stack}.{kind}"][layer] / 65535
                apart["mean"] = max(apart.get("mean", 0), float(np.abs(mean - view.weights.mean(0)).max()))
    return apart


# By day both stacks, whose graphs test_site.py opens, too.
@pytest.fixture(
    scope="module",
    params=["translator", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("bert", "gpt", "sentiment"))],
)
def tiny(request, tiny_checkpoint, checkpoints_folder, tmp_path_factory) -> Exported:
    checkpoint = tiny_checkpoint(request.param)
    return Exported(checkpoint, checkpoints_folder / checkpoint.name, tmp_path_factory.mktemp("graphs"))


def traces(checkpoint: Checkpoint, sentences: list[str]) -> list[Trace]:
    read = {} if checkpoint.config.kind != "encoder-decoder" else {"target": "Le chat dort."}
    return [transformer.trace(checkpoint, sentence, **read) for sentence in sentences]


def test_tiny_models_agree_with_torch(tiny: Exported) -> None:
    for trace in traces(tiny.checkpoint, ["a", "The cat sat on the mat.", "Élan 😀 œuvre, " * 3]):
        apart = differences(trace, tiny.run(trace))
        assert len(apart) > 40
        assert max(apart.values()) <= TOLERANCE, max(apart.items(), key=lambda item: item[1])


def test_a_head_is_removed_as_in_the_app(tiny: Exported) -> None:
    stack = "decoder" if tiny.checkpoint.config.has_decoder else "encoder"
    specs = [f"zero:{stack}.1.self.0"]
    plain = traces(tiny.checkpoint, ["The cat sat on the mat."])[0]
    target = None if plain.target is None else "Le chat dort."
    edited = transformer.trace(
        tiny.checkpoint, "The cat sat on the mat.", target, edits=edits_from(tiny.checkpoint, specs)
    )
    heads = np.ones((2, tiny.checkpoint.config.n_heads), np.float32)
    heads[1, 0] = 0
    found = tiny.run(edited, {f"{stack}.self.heads": heads})
    assert max(differences(edited, found).values()) <= TOLERANCE


def test_the_weights_stay_in_the_checkpoints_file(tiny: Exported) -> None:
    import onnx

    for graph in tiny.graphs.values():
        inline = [one for one in onnx.load_model_from_string(graph.onnx).graph.initializer if not one.external_data]
        # positions, the matrix of the threads and the mask of tokens that are never generated are computed, not stored
        assert max(int(np.prod(one.dims)) for one in inline) <= 96 * 32
        assert str(Path(__file__).parents[2]).encode() not in graph.onnx


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["en-fr", "gpt-en", "bert-en"])
def test_shipped_models_agree_with_torch(name: str, tmp_path: Path) -> None:
    checkpoint = transformer.load(CHECKPOINTS / name)
    exported = Exported(checkpoint, CHECKPOINTS / name, tmp_path)
    most = checkpoint.config.max_length // 4
    for sentence in ["a", "I love you.", "Where did she buy the old red car, and why?", "the sea and " * (most // 4)]:
        trace = transformer.trace(checkpoint, sentence)
        apart = differences(trace, exported.run(trace))
        assert max(apart.values()) <= TOLERANCE, max(apart.items(), key=lambda item: item[1])
