"""Encoders without a head equal Hugging Face's: vectors, attention, and the cosine by parts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import transformer
from tests.transformer.guests.hugging_face import build
from tests.transformer.guests.their_numbers import TOLERANCE, equals_theirs
from tests.transformer.text.foreign_folders import theirs, word_piece, write
from transformer.errors import CheckpointError
from transformer.layers.embedding_space import parts_of_cosine, pooled_tokens
from transformer.layers.gradient_step import training_step
from transformer.predictions.answer_probabilities import prediction_rows

TEXTS = ("The cat sat on the mat.", "A dog lies in the sun, and sleeps.")
SETTINGS = {"tokenizer_class": "BertTokenizer", "model_type": "bert"}


def saved(folder: Path, case: str = "bert", pooling: dict | None = None) -> torch.nn.Module:
    model = build(case, vocab_size=word_piece().get_vocab_size()).base_model
    model.save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    write(folder, config, SETTINGS, word_piece())
    if pooling is not None:
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return model.eval()


def vector(hidden: torch.Tensor, kind: str) -> torch.Tensor:
    return {"mean": hidden.mean(dim=0), "first": hidden[0], "max": hidden.amax(dim=0)}[kind]


@pytest.mark.slow
@pytest.mark.parametrize("case", ["bert", "distilbert"])
@pytest.mark.parametrize(
    ("pooling", "kind"),
    [
        (None, "mean"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "first"),
        ({"pooling_mode_max_tokens": True}, "max"),
        ({"pooling_mode": "mean"}, "mean"),
    ],
)
def test_its_vectors_are_those_of_hugging_face(tmp_path: Path, case: str, pooling: dict | None, kind: str) -> None:
    model, oracle = saved(tmp_path, case, pooling), theirs
    checkpoint = transformer.load(tmp_path)
    assert checkpoint.config.pooling == kind
    traces, vectors = [transformer.trace(checkpoint, text) for text in TEXTS], []
    for text, trace in zip(TEXTS, traces, strict=True):
        ids = oracle(tmp_path)(text).input_ids
        assert list(trace.source.ids) == ids
        with torch.no_grad():
            vectors.append(vector(model(torch.tensor([ids])).last_hidden_state[0], kind))
        assert trace.values("pooling.vector") == pytest.approx(vectors[-1].numpy(), abs=5e-6)
        assert pooled_tokens(trace).sum(axis=0) == pytest.approx(vectors[-1].numpy(), abs=5e-6)
        assert prediction_rows(trace).rows == () and trace.text == "" and trace.prediction is None
    parts = parts_of_cosine(*traces)
    assert parts.shape == tuple(len(trace.source) for trace in traces)
    assert parts.sum() == pytest.approx(float(torch.cosine_similarity(*vectors, dim=0)), abs=1e-6)
    if kind == "first":
        assert np.count_nonzero(parts) == 1
    assert all(equals_theirs(checkpoint.model, model, length, tolerance=TOLERANCE) for length in (1, 9))


def test_padding_is_not_in_the_vector(tmp_path: Path) -> None:
    saved(tmp_path)
    checkpoint = transformer.load(tmp_path)
    alone, padded = (transformer.trace(checkpoint, TEXTS[0], source_pads=pads) for pads in (0, 3))
    assert padded.values("pooling.vector") == pytest.approx(alone.values("pooling.vector"), abs=1e-6)
    assert pooled_tokens(padded).sum(axis=0) == pytest.approx(alone.values("pooling.vector"), abs=1e-6)


@pytest.mark.parametrize("pooling", [{"pooling_mode_lasttoken": True}, {"pooling_mode": ["cls", "mean"]}])
def test_another_way_to_make_a_vector_is_refused(tmp_path: Path, pooling: dict) -> None:
    saved(tmp_path, pooling=pooling)
    with pytest.raises(CheckpointError, match="computes the vector of a sentence by"):
        transformer.load(tmp_path)


def test_it_has_no_loss_to_train_on(tmp_path: Path) -> None:
    saved(tmp_path)
    trace = transformer.trace(transformer.load(tmp_path), "The cat sat.")
    with pytest.raises(transformer.InputError, match="no output head"):
        training_step(trace, stack="encoder")
