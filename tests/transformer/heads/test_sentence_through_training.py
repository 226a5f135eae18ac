"""One sentence at several steps: moments equal their models' results, and maps move as defined."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import transformer
from transformer.files.snapshots import snapshot, snapshot_file, write_snapshot
from transformer.heads.sentence_through_training import (
    Moment,
    changed_most,
    greatest_turn,
    map_change,
    moment_of,
    shared_words,
    training_steps,
)
from transformer.predictions.answer_probabilities import read_answer
from transformer.runs.decoding_state import writable
from transformer.runs.head_places import Head
from transformer.training.run_state import write_history

SENTENCE = "The old man told us a story, and the sea was cold."
KINDS = ("translator", "gpt", "bert", "sentiment")


def development(checkpoint: transformer.Checkpoint, sentence: str, target: str | None = None) -> list[Moment]:
    """Return the moments at all training steps, with the finished model's output or ``target``."""
    trace = transformer.trace(checkpoint, sentence, target)
    *earlier, own = training_steps(checkpoint)
    models = [*(snapshot(checkpoint, step) for step in earlier), checkpoint]
    return [moment_of(model, step, trace) for model, step in zip(models, (*earlier, own), strict=True)]


@pytest.fixture(scope="module")
def grown(checkpoints_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> transformer.Checkpoint:
    """The tiny translator with snapshots of steps 0 and 300; its own step is 700."""
    folder = shutil.copytree(checkpoints_folder / "tiny-translator", tmp_path_factory.mktemp("grown") / "grown")
    checkpoint = transformer.load(folder)
    for step in (0, 300, 900):
        with torch.random.fork_rng():
            torch.manual_seed(step)
            write_snapshot(folder / snapshot_file(step), transformer.build_model(checkpoint.config), step)
    write_history(folder / "history.csv", [{"step": 700, "dev_score": 2.0}, {"step": 900, "dev_score": 1.0}])
    return checkpoint


def test_the_steps_are_those_before_the_checkpoints_own_which_history_tells(
    grown, tiny_checkpoint: Callable, tmp_path: Path
) -> None:
    assert training_steps(grown) == (0, 300, 700)
    assert training_steps(tiny_checkpoint("gpt")) == ()
    folder = shutil.copytree(grown.path, tmp_path / "copy")
    (folder / "history.csv").unlink()
    assert training_steps(transformer.load(folder)) == (0, 300, 900, None)


def test_every_moment_reads_the_answer_of_the_finished_model(grown) -> None:
    moments = development(grown, SENTENCE)
    trace = transformer.trace(grown, SENTENCE)
    assert [moment.step for moment in moments] == [0, 300, 700]
    for moment in moments:
        for view in moment.views:
            assert view.query.ids == trace.tokens(view.stack).ids
    earlier = snapshot(grown, 300)
    assert moments[1].text == transformer.decode(earlier, SENTENCE).text
    assert moments[2].text == trace.text
    with torch.inference_mode():
        inputs = [torch.tensor([tokens.ids]) for tokens in (trace.source, trace.target)]
        log_p = writable(earlier.model(*inputs)[0].double()).log_softmax(dim=-1)
    ids = torch.tensor(trace.prediction.ids)
    assert moments[1].n_tokens == len(ids)
    assert moments[1].log_probability == pytest.approx(float(log_p[range(len(ids)), ids].sum()), rel=1e-6)
    entropy = -(log_p.exp() * log_p).nansum(-1).mean() / math.log(2)
    assert moments[1].uncertainty == pytest.approx(float(entropy), rel=1e-6)
    assert moments[0].view("decoder", 1, "cross").weights.shape == (2, len(trace.target), len(trace.source))
    assert (moments[0].views[0].weights != moments[1].views[0].weights).any()


@pytest.mark.parametrize("kind", KINDS)
def test_the_finished_model_of_every_kind_agrees_with_its_own_trace(kind: str, tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint(kind)
    sentence = "The cat [MASK] on the mat." if kind == "bert" else SENTENCE
    trace = transformer.trace(checkpoint, sentence)
    moment = moment_of(checkpoint, 5, trace)
    answer = read_answer(trace)
    assert moment.text == trace.text
    assert moment.n_tokens == len(answer.parts) > 0
    assert moment.log_probability == pytest.approx(math.log(answer.probability), rel=1e-6)
    if kind == "bert":
        nothing = moment_of(checkpoint, 5, transformer.trace(checkpoint, SENTENCE))  # no blank is asked for
        assert nothing.n_tokens == 0
        assert math.isnan(nothing.log_probability) and math.isnan(nothing.uncertainty)


def test_how_far_a_map_has_moved(grown) -> None:
    view = transformer.trace(grown, SENTENCE).attention("decoder", 0)
    n = len(view.query)
    first, last = np.zeros((2, n, n), np.float32), np.zeros((2, n, n), np.float32)
    first[:, :, 0] = 1.0
    last[0, :, 0] = 1.0  # head 0 stays, head 1 changes to the diagonal
    last[1] = np.eye(n)
    before, after = replace(view, weights=first), replace(view, weights=last)
    np.testing.assert_allclose(map_change(before, after), [0.0, 1.0])
    halfway = replace(view, weights=(first + last) / 2)
    np.testing.assert_allclose(map_change(halfway, after), [0.0, 0.5])
    moments = [Moment(step, "", 0.0, 1, 0.0, (shown,)) for step, shown in enumerate((before, halfway, after))]
    assert changed_most(moments) == (Head("decoder", "self", 0, 1), 1.0)
    later = [*moments, replace(moments[2], views=(before,))]
    assert greatest_turn(later, Head("decoder", "self", 0, 1)) == (3, 1.0)
    assert greatest_turn(later, Head("decoder", "self", 0, 0)) == (1, 0.0)
    with pytest.raises(ValueError, match="1 moments are too few"):
        greatest_turn(moments[:1], Head("decoder", "self", 0, 1))


@pytest.mark.parametrize(
    ("text", "other", "shared"),
    [
        ("Le chat dort.", "Le chien dort.", ["Le", " dort", "."]),
        ("chat chat le", "le chat", ["chat"]),
        ("Il s'assit", "s'assit", [" s", "'", "assit"]),
        ("Mary aime Tom.", "Tom aime Mary.", [" aime", "."]),
        ("le chat dort ici", "chat dort ici bien", [" chat", " dort", " ici"]),
        ("", "le", []),
        ("a", "", []),
    ],
)
def test_words_that_two_answers_share(text: str, other: str, shared: list[str]) -> None:
    pieces = shared_words(text, other)
    assert "".join(piece for piece, _ in pieces) == text
    assert [piece for piece, is_shared in pieces if is_shared] == shared
