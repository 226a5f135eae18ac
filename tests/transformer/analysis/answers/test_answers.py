from __future__ import annotations

import numpy as np
import pytest
import torch

import transformer
from transformer.analysis.answers.answer_probabilities import answer_of, class_probabilities, softmax


@pytest.mark.parametrize("target", [None, "Le chien dort."])
def test_probability_of_a_translation_is_the_product_over_its_tokens(tiny_checkpoint, target):
    checkpoint = tiny_checkpoint("translator")
    trace = transformer.trace(checkpoint, "The dog sleeps.", target=target, source_pads=2)
    answer = answer_of(trace)
    with torch.inference_mode():
        logits = checkpoint.model(torch.tensor([trace.source.ids]), torch.tensor([trace.target.ids]))[0]
    log_p = torch.log_softmax(logits.double(), dim=-1)[range(len(trace.prediction)), list(trace.prediction.ids)]
    assert answer.text == trace.text
    assert len(answer.parts) == len(trace.prediction)
    assert answer.probability == pytest.approx(float(log_p.sum().exp()), rel=1e-4)
    assert answer.mean_probability == pytest.approx(float(log_p.mean().exp()), rel=1e-4)


def test_a_continuation_leaves_the_prompt_out(tiny_checkpoint):
    checkpoint = tiny_checkpoint("gpt")
    trace = transformer.trace(checkpoint, "The dog", target=" sleeps")
    answer = answer_of(trace)
    n_prompt = 1 + len(checkpoint.tokenizer.encode("The dog"))
    assert len(answer.parts) == len(trace.prediction) - (n_prompt - 1)
    assert "".join(part.display for part in answer.parts).startswith(trace.prediction[n_prompt - 1].display)
    row = softmax(trace.values("decoder.logits")[n_prompt - 1])
    assert answer.parts[0].probability == pytest.approx(row[trace.prediction[n_prompt - 1].id])


def test_a_masked_token_model_is_asked_only_at_its_blanks(tiny_checkpoint):
    checkpoint = tiny_checkpoint("bert")
    trace = transformer.trace(checkpoint, "The ___ sleeps under the ___.")
    answer = answer_of(trace)
    assert len(answer.parts) == 2 and 0 < answer.probability < 1
    nothing = answer_of(transformer.trace(checkpoint, "The dog."))
    assert nothing.parts == () and np.isnan(nothing.probability)


def test_a_classifier_answers_with_its_best_class(tiny_checkpoint):
    checkpoint = tiny_checkpoint("sentiment")
    trace = transformer.trace(checkpoint, "The dog.")
    answer = answer_of(trace)
    assert answer.parts[0].display == trace.text and answer.probability >= 0.5
    classes = class_probabilities(trace)
    assert tuple(part.display for part in classes) == checkpoint.config.class_names
    assert sum(part.probability for part in classes) == pytest.approx(1) and answer.parts[0] in classes


def test_softmax_survives_large_logits():
    np.testing.assert_allclose(softmax(np.array([1000.0, 1000.0, -np.inf])), [0.5, 0.5, 0])
