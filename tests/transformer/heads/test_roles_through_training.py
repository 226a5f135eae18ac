"""One sentence at several steps: moments equal their models' results, and roles settle as defined.

The history of heads: each number is that of its snapshot, and a file that does not fit is not used.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import transformer
from transformer.files.snapshots import snapshot, snapshot_file, write_snapshot
from transformer.heads.head_roles import HeadRole, corpus_roles, sentence_roles
from transformer.heads.induction import repeated_lengths, repeated_sequences
from transformer.heads.roles_through_training import (
    FILE,
    HeadHistory,
    Moment,
    changed_most,
    development,
    greatest_turn,
    load_role_history,
    map_change,
    moment_of,
    repeated_loss,
    role_history,
    save_role_history,
    settled_heads,
    settled_moment,
    shared_words,
    training_steps,
)
from transformer.predictions.answer_probabilities import read_answer
from transformer.runs.attention_view import AttentionView
from transformer.runs.decoding_state import writable
from transformer.runs.head_places import Head
from transformer.training.run_state import write_history

SENTENCE = "The old man told us a story, and the sea was cold."
KINDS = ("translator", "gpt", "bert", "sentiment")


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


def test_the_steps_are_those_before_the_checkpoints_own_and_that_one(grown, tiny_checkpoint: Callable) -> None:
    assert training_steps(grown) == (0, 300, 700)
    assert training_steps(tiny_checkpoint("gpt")) == ()


def test_later_snapshots_alone_are_no_history(grown, tmp_path: Path) -> None:
    folder = shutil.copytree(grown.path, tmp_path / "copy")
    write_history(folder / "history.csv", [{"step": 0, "dev_score": 1.0}])
    assert training_steps(transformer.load(folder)) == ()


def test_a_checkpoint_without_history_does_not_know_its_own_step(grown, tmp_path: Path) -> None:
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


def test_the_answer_may_be_given(grown) -> None:
    moments = development(grown, SENTENCE, "Le chat.")
    assert all(moment.view("decoder", 0, "self").query.text == "Le chat." for moment in moments)
    assert moments[-1].text == transformer.decode(grown, SENTENCE).text


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
    roles = [
        role
        for stack, attention in trace.attention_kinds()
        for layer in range(trace.n_layers(stack))
        for role in sentence_roles(trace.attention(stack, layer, attention))
    ]
    assert [(role.layer, role.head, role.role) for role in moment.roles] == [(r.layer, r.head, r.role) for r in roles]
    idle = ("broad", "none", "sink", "first", "punctuation")
    assert moment.clear_roles == sum(role.role not in idle for role in roles)
    assert moment.at_rest == sum(role.role in idle[2:] for role in roles)


def test_a_model_that_is_asked_nothing_has_no_probability(tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint("bert")
    moment = moment_of(checkpoint, 5, transformer.trace(checkpoint, SENTENCE))
    assert moment.n_tokens == 0
    assert math.isnan(moment.log_probability) and math.isnan(moment.uncertainty)


def test_padding_is_read_at_every_step(grown) -> None:
    trace = transformer.trace(grown, SENTENCE, source_pads=3)
    moment = moment_of(snapshot(grown, 0), 0, trace)
    assert moment.view("encoder", 0, "self").key.displays[-3:] == ("<pad>",) * 3
    assert moment.text == transformer.decode(snapshot(grown, 0), SENTENCE, source_pads=3).text


# ---- when a role is settled -----------------------------------------------------------------------------------------


def moments_of(*roles: str) -> list[Moment]:
    """Return one head with the given roles at every step."""
    return [
        Moment(step, "", 0.0, 1, 0.0, (), (HeadRole("encoder", "self", 0, 0, role, {}),))
        for step, role in enumerate(roles)
    ]


@pytest.mark.parametrize(
    ("roles", "index"),
    [
        (("broad", "none", "previous", "previous"), 2),
        (("previous", "none", "previous"), 2),
        (("previous", "previous"), 0),
        (("next", "previous"), 1),
        (("previous", "none"), None),
        (("previous", "broad"), None),
        (("none",), None),
    ],
)
def test_a_role_is_settled_when_it_stays(roles: tuple[str, ...], index: int | None) -> None:
    moments = moments_of(*roles)
    place = Head("encoder", "self", 0, 0)
    assert settled_moment(moments, place) == index
    found = settled_heads(moments)
    assert len(found) == len(moments)
    assert [k for k, places in enumerate(found) if places == (place,)] == ([] if index is None else [index])


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
    moments = [Moment(step, "", 0.0, 1, 0.0, (shown,), ()) for step, shown in enumerate((before, halfway, after))]
    assert changed_most(moments) == (Head("decoder", "self", 0, 1), 1.0)
    later = [*moments, replace(moments[2], views=(before,))]
    assert greatest_turn(later, Head("decoder", "self", 0, 1)) == (3, 1.0)
    assert greatest_turn(later, Head("decoder", "self", 0, 0)) == (1, 0.0)
    with pytest.raises(ValueError, match="1 moments are too few"):
        greatest_turn(moments[:1], Head("decoder", "self", 0, 1))


def test_a_map_of_one_row_has_no_choice_and_has_not_moved(grown) -> None:
    view = transformer.trace(grown, SENTENCE).attention("decoder", 0)
    only = AttentionView(
        "x", "decoder", 0, "self", np.ones((2, 1, 1)), np.ones((1, 1), bool), np.zeros((2, 1, 1)),
        *(transformer.TokenSequence(view.query.tokens[:1]),) * 2,
    )  # fmt: skip
    assert map_change(only, only).tolist() == [0.0, 0.0]


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


SENTENCES = ["The old man told us a story, and the sea was cold.", "We saw the red house near the river this morning."]


@pytest.fixture(scope="module", params=["gpt", "translator"])
def grown_gpt(
    request: pytest.FixtureRequest, checkpoints_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> transformer.Checkpoint:
    """A tiny model with a snapshot of step 10; its own step is 20."""
    folder = shutil.copytree(
        checkpoints_folder / f"tiny-{request.param}", tmp_path_factory.mktemp("grown_gpt") / "grown_gpt"
    )
    checkpoint = transformer.load(folder)
    with torch.random.fork_rng():
        torch.manual_seed(10)
        write_snapshot(folder / snapshot_file(10), transformer.build_model(checkpoint.config), 10)
    write_history(folder / "history.csv", [{"step": 20, "dev_score": 1.0}])
    return checkpoint


@pytest.mark.slow
def test_every_strength_is_that_of_the_snapshot(grown_gpt: transformer.Checkpoint) -> None:
    seen = []
    history = role_history(grown_gpt, SENTENCES, progress=lambda *done: seen.append(done))
    assert (history.steps, history.n_sentences, seen) == ((10, 20), 2, [(0, 2), (1, 2)])
    models = (snapshot(grown_gpt, 10), grown_gpt)
    found = [{(h.stack, h.kind, h.layer, h.head): h.measured for h in corpus_roles(m, SENTENCES).heads} for m in models]
    assert len(history.heads) == len(found[1])
    for head in history.heads:
        assert head.test == found[1][head.place].strongest
        assert head.has_role == found[1][head.place].has_role
        for strength, at_step in zip(head.strengths, found, strict=True):
            measure = at_step[head.place].measures.get(head.test)
            assert strength == pytest.approx(measure.strength if measure else 0.0, abs=1e-3, rel=1e-3)
    of_writer = grown_gpt.config.kind == "decoder-only"
    assert history.repeated_loss == (tuple(repeated_loss(model) for model in models) if of_writer else ())


def test_the_loss_of_repeated_tokens_counts_the_second_time_only(tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint("gpt")
    config = checkpoint.config
    lengths = repeated_lengths(config.max_length)
    total, count = 0.0, 0
    with torch.inference_mode():
        for length, row in zip(lengths, repeated_sequences(config.vocabulary_size, lengths, seed=0), strict=True):
            logits = checkpoint.model(row[None, :-1])[0]
            for place in range(1 + length, 1 + 2 * length):
                total += float(F.cross_entropy(logits[place - 1], row[place]))
                count += 1
    assert repeated_loss(checkpoint) == pytest.approx(total / count, rel=1e-4)
    assert abs(repeated_loss(checkpoint) - math.log(config.vocabulary_size)) < 3


@pytest.mark.slow
def test_what_was_saved_is_read_again_for_these_weights_only(grown_gpt: transformer.Checkpoint, tmp_path: Path) -> None:
    assert load_role_history(grown_gpt) is None
    folder = shutil.copytree(grown_gpt.path, tmp_path / "copy")
    checkpoint = transformer.load(folder)
    history = role_history(checkpoint, SENTENCES)
    path = save_role_history(checkpoint, history, SENTENCES)
    assert load_role_history(checkpoint) == history
    values = json.loads(path.read_text(encoding="utf-8"))

    def refused(words: str, **changes: object) -> None:
        (folder / FILE).write_text(json.dumps({**values, **changes}), encoding="utf-8")
        with pytest.raises(transformer.CheckpointError, match=words):
            load_role_history(checkpoint)

    refused("made from other weights", checkpoint="0" * 12)
    refused("made from other weights", steps=[10, 30])
    refused("a number for each of its 3 steps", steps=[1, 2, 3])
    refused("is not a complete file", heads=[{"stack": "decoder"}])
    (folder / FILE).write_text("{", encoding="utf-8")
    with pytest.raises(transformer.CheckpointError, match="is not a complete file"):
        load_role_history(checkpoint)


def test_a_checkpoint_without_snapshots_has_no_history(tiny_checkpoint: Callable) -> None:
    with pytest.raises(ValueError, match="without snapshots"):
        role_history(tiny_checkpoint("bert"), SENTENCES)


def test_files_keep_their_old_name_for_a_role(tmp_path: Path) -> None:
    """Files of older versions can be read, and older versions can read those written now."""
    shipped = Path(__file__).parents[3] / "checkpoints" / "en-fr-sharp"
    before = json.loads((shipped / FILE).read_text(encoding="utf-8"))["heads"]
    history = load_role_history(transformer.load(shipped))
    assert [head.has_role for head in history.heads] == [head["has_job"] for head in before]
    copy = transformer.load(shutil.copytree(shipped, tmp_path / "en-fr-sharp"))
    save_role_history(copy, history, ["A sentence."])
    after = json.loads((copy.path / FILE).read_text(encoding="utf-8"))["heads"]
    assert after == before


def test_the_old_name_of_has_role_warns() -> None:
    head = HeadHistory("encoder", "self", 0, 0, "offset", -1, True, (0.0, 1.0))
    with pytest.warns(DeprecationWarning, match="is now HeadHistory.has_role"):
        assert head.has_job
