"""Every number of a trace in NumPy and float64: of shipped checkpoints, and of drawn models."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import transformer
from tests.shipped import SHIPPED, shipped
from tests.transformer.numpy_forward import NumpyTransformer, by_hand, compare
from tests.transformer.test_pictures import PICTURE
from tests.transformer.tiny import random_model
from transformer.config import ACTIVATIONS, NORMS, POSITIONS
from transformer.fast.shortcut import fast_path
from transformer.probes import record
from transformer.runs.recorded import Recorded

SENTENCES = {"The cat sat on the mat.": 0, "Don't 🙂 stop!": 3}  # sentence → number of padding tokens
IDS = st.lists(st.integers(4, 22), min_size=1, max_size=9)


@pytest.mark.parametrize("name", [path.name for path in SHIPPED])
def test_every_number_is_that_of_the_formulas(name: str) -> None:
    checkpoint = shipped(name)
    of_pictures = checkpoint.config.reads_images
    sentences = {PICTURE: 0} if of_pictures else SENTENCES
    if checkpoint.config.n_segments:
        sentences = {**sentences, "The cat ___ || on the mat.": 3}
    for sentence, pads in sentences.items():
        trace = transformer.trace(checkpoint, sentence, source_pads=pads if checkpoint.config.has_encoder else 0)
        read = (part and list(part.ids) for part in (trace.source, trace.target))
        compare(trace.activations, by_hand(name).forward(*read))


MODELS = {
    "translator": {"kind": "encoder-decoder"},
    "writer": {"kind": "decoder-only"},
    "fills blanks": {"kind": "encoder-only"},
    "classifier": {"kind": "encoder-only", "class_names": ("bad", "good", "neither")},
    "next sentence": {"kind": "encoder-only", "n_segments": 2},
}
CHOICES = st.fixed_dictionaries(
    {
        "positions": st.sampled_from(POSITIONS),
        "norm": st.sampled_from(NORMS),
        "activation": st.sampled_from(ACTIVATIONS),
        "tie_embeddings": st.booleans(),
        "rms_norm": st.booleans(),
        "seed": st.integers(0, 2**16),
    }
)


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=40, deadline=None, phases=(Phase.explicit, Phase.generate))  # shrinking takes minutes
@given(CHOICES, IDS, IDS, st.integers(0, 3))
def test_every_number_of_any_model_is_that_of_the_formulas(
    name: str, choices: dict[str, Any], source: list[int], target: list[int], pads: int
) -> None:
    """Every kind of model with random weights on any tokens, padded; the fast path gives the same output."""
    model = random_model.__wrapped__(**MODELS[name], **choices)
    config = json.loads(model.config.to_json())
    read = {"source": [*source, 2] + [0] * pads, "target": [1, *target] + [0] * pads}
    sizes = {"source": model.config.n_encoder_layers, "target": model.config.n_decoder_layers}
    read = {name: ids for name, ids in read.items() if sizes[name]}
    numpy_model = NumpyTransformer(config, {name: tensor.numpy() for name, tensor in model.state_dict().items()})
    expected = numpy_model.forward(read.get("source"), read.get("target"))
    inputs = [torch.tensor([ids]) for ids in read.values()]
    found = Recorded(model, inputs)
    compare(found, expected)
    with torch.inference_mode(), record(names=()):
        plain = model(*inputs)[0].numpy()
    with torch.inference_mode(), fast_path():
        fast = model(*inputs)[0].numpy()
    output = next(name for name in found if name.endswith(".logits") and not name.startswith("next_sentence"))
    np.testing.assert_array_equal(plain, found[output].values)
    np.testing.assert_allclose(fast, plain, rtol=0, atol=2e-5 * max(1.0, float(np.abs(plain).max())))
