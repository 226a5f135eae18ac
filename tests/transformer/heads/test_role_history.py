"""The history of heads: each number is that of the snapshot it stands for, and a file that does not fit is not used."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

import transformer
from transformer.files.snapshots import snapshot, snapshot_file, write_snapshot
from transformer.heads.corpus_roles import corpus_roles
from transformer.heads.induction import repeated_lengths, repeated_sequences
from transformer.heads.role_history import FILE, load_role_history, repeated_loss, role_history, save_role_history
from transformer.training.run_state import write_history

SENTENCES = ["The old man told us a story, and the sea was cold.", "We saw the red house near the river this morning."]


@pytest.fixture(scope="module", params=["gpt", "translator"])
def grown(
    request: pytest.FixtureRequest, checkpoints_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> transformer.Checkpoint:
    """A tiny model with a snapshot of step 10, its own step being 20."""
    folder = shutil.copytree(checkpoints_folder / f"tiny-{request.param}", tmp_path_factory.mktemp("grown") / "grown")
    checkpoint = transformer.load(folder)
    with torch.random.fork_rng():
        torch.manual_seed(10)
        write_snapshot(folder / snapshot_file(10), transformer.build_model(checkpoint.config), 10)
    write_history(folder / "history.csv", [{"step": 20, "dev_score": 1.0}])
    return checkpoint


@pytest.mark.slow
def test_every_strength_is_that_of_the_snapshot(grown: transformer.Checkpoint) -> None:
    seen = []
    history = role_history(grown, SENTENCES, progress=lambda *done: seen.append(done))
    assert (history.steps, history.n_sentences, seen) == ((10, 20), 2, [(0, 2), (1, 2)])
    models = (snapshot(grown, 10), grown)
    found = [{(h.stack, h.kind, h.layer, h.head): h.measured for h in corpus_roles(m, SENTENCES).heads} for m in models]
    assert len(history.heads) == len(found[1])
    for head in history.heads:
        assert head.test == found[1][head.place].strongest
        assert head.has_job == found[1][head.place].has_job
        for strength, at_step in zip(head.strengths, found, strict=True):
            measure = at_step[head.place].measures.get(head.test)
            assert strength == pytest.approx(measure.strength if measure else 0.0, abs=1e-3, rel=1e-3)
    of_writer = grown.config.kind == "decoder-only"
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
def test_what_was_saved_is_read_again_for_these_weights_only(grown: transformer.Checkpoint, tmp_path: Path) -> None:
    assert load_role_history(grown) is None
    folder = shutil.copytree(grown.path, tmp_path / "copy")
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
