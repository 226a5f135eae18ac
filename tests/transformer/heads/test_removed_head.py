"""The loss without a head equals its removal and its attribution, sentence by sentence."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from transformer.errors import InputError
from transformer.heads.removed_head import removed_head
from transformer.interventions.experiment import experiment
from transformer.interventions.head_importance import head_effect
from transformer.runs.edits import ablate_head
from transformer.runs.head_places import Head

SENTENCES = ["The old man told us a long story.", "", "She saw him.", "Yes."]


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("gpt", ("decoder", "self", 1, 1)),
        ("sentiment", ("encoder", "self", 1, 0)),
        ("translator", ("encoder", "self", 0, 1)),
        ("translator", ("decoder", "cross", 1, 0)),
    ],
)
def test_alone_and_with_its_group(tiny_checkpoint, kind, place):
    checkpoint, head = tiny_checkpoint(kind), Head(*place)
    group = [head._replace(head=1 - head.head)]
    found = removed_head(checkpoint, SENTENCES, head, group)
    traces = [transformer.trace(checkpoint, sentence) for sentence in SENTENCES if sentence]
    effects = [head_effect(one, head.stack, head.layer, head.kind, head=head.head) for one in traces]
    changes = np.concatenate([effect.after - effect.before for effect in effects])
    assert found.n_sentences == 3 and found.n_words == len(changes)
    assert found.alone == pytest.approx(changes.mean())
    edits = [ablate_head(head.stack, layer=head.layer, kind=head.kind, head=number) for number in (0, 1)]
    together = np.concatenate([(effect := experiment(one, edits)).after - effect.before for one in traces])
    assert found.together == pytest.approx(together.mean())
    direct = kind != "translator" or head.stack == "decoder"
    assert bool(found.added.size) == direct and found.added.shape == found.lost.shape


def test_without_a_group_only_alone(tiny_checkpoint):
    found = removed_head(tiny_checkpoint("gpt"), SENTENCES, Head("decoder", "self", 0, 0), most=1)
    assert found.n_sentences == 1 and np.isnan(found.together) and found.group == ()


def test_nothing_to_read_is_a_sentence(tiny_checkpoint):
    with pytest.raises(InputError):
        removed_head(tiny_checkpoint("gpt"), [""], Head("decoder", "self", 0, 0))
