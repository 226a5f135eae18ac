"""A score is the sum of its sources, up to rounding, for every kind of model and attention."""

from dataclasses import replace

import numpy as np
import pytest

import transformer
from tests.foreign_checkpoints import FOREIGN
from tests.shipped import SHIPPED
from tests.transformer.test_pictures import PICTURE
from tests.transformer.tiny import random_model
from transformer.attention_maps.score_sources import score_sources
from transformer.config import PictureConfig
from transformer.layers.residual_stream import Part, stream_parts
from transformer.runs.traces import Trace

SENTENCE = "The old man told us a long story."
KINDS = ("translator", "gpt", "bert", "sentiment")


def attentions(trace: Trace) -> list[tuple[str, int, str]]:
    """Return every attention of the model: (stack, layer, kind)."""
    found = []
    for stack in ("encoder", "decoder"):
        if hasattr(trace.checkpoint.model, stack):
            kinds = [kind for kind in ("self", "cross") if f"{stack}.layers.0.{kind}_attention.weights" in trace]
            found += [(stack, layer, kind) for layer in range(trace.n_layers(stack)) for kind in kinds]
    return found


def check_all(trace: Trace) -> None:
    """The sums of every attention's last head are the recorded scores, alone and as a difference of two."""
    assert attentions(trace)
    for stack, layer, kind in attentions(trace):
        view = trace.attention(stack, layer, kind)
        recorded = trace.values(f"{view.name}.scores").astype(np.float64)
        head, query, key, other = view.n_heads - 1, min(3, len(view.query) - 1), 1, 0
        for against in (None, other):
            found = score_sources(trace, stack, layer, kind, head=head, query=query, key=key, against=against)
            scale = max(1.0, np.abs(found.values).sum())
            assert found.deviation < 1e-6 * scale, (view.name, against)
            expected = recorded[head, query, key] - (0.0 if against is None else recorded[head, query, other])
            if found.cap is None:
                assert found.total == pytest.approx(expected, abs=2e-6 * scale), (view.name, against)
            elif against is None:
                assert found.cap * np.tanh(found.total / found.cap) == pytest.approx(expected, abs=2e-6 * scale)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model(tiny_checkpoint, kind):
    check_all(transformer.trace(tiny_checkpoint(kind), SENTENCE))


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "relative", "none"])
def test_every_order_of_norms_and_scheme_of_positions(tiny_checkpoint, norm, positions):
    checkpoint = tiny_checkpoint("translator")
    sizes = {"vocabulary_size": checkpoint.config.vocabulary_size, "max_length": 64}
    model = random_model(norm=norm, positions=positions, **sizes)
    check_all(transformer.trace(replace(checkpoint, model=model), SENTENCE, target="Le chat dort."))


@pytest.mark.parametrize("name", FOREIGN)
def test_other_families(family, name):
    check_all(transformer.trace(family(name), SENTENCE))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_the_checkpoints_of_the_repository(path):
    checkpoint = transformer.load(path)
    reads = PICTURE if isinstance(checkpoint.config, PictureConfig) else "The old ___ read a good book."
    target = "My name is Tom." if checkpoint.config.has_encoder and checkpoint.config.has_decoder else None
    check_all(transformer.trace(checkpoint, reads, target=target))


def test_the_parts_of_the_output_sum_to_it(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE)
    parts = stream_parts(trace, "encoder", 2)
    assert np.abs(sum(parts.values()) - trace.values("encoder.final_norm.output")[2]).max() < 1e-5
    assert next(iter(parts)) == Part("token") and list(parts)[-1] == Part("final_norm")


def test_an_edit_is_a_part_of_its_own(tiny_checkpoint):
    checkpoint = tiny_checkpoint("gpt")
    edit = transformer.ablate_head("decoder", layer=0, kind="self", head=1)
    trace = transformer.trace(checkpoint, SENTENCE, edits=[edit])
    check_all(trace)
    found = score_sources(trace, "decoder", 1, "self", head=0, query=3, key=1)
    at = found.key_parts.index(Part("self_attention", 0, 1))
    assert not found.values[:, at].any(), "a head that is cut writes nothing that a key could be made from"


def test_the_table_keeps_the_sum(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("gpt"), SENTENCE)
    found = score_sources(trace, "decoder", 1, "self", head=0, query=4, key=2)
    rows, columns, values = found.table(3)
    assert len(rows) == len(columns) == 4 and rows[-1] is None and columns[-1] is None and values.shape == (4, 4)
    assert values.sum() == pytest.approx(found.values.sum())
    assert [row for row in rows[:-1]] == sorted(rows[:-1], key=found.query_parts.index)
    rows, columns, values = found.table(100)
    assert None not in rows + columns and (values == found.values).all()
    first = found.strongest(1)[0]
    assert abs(first[2]) == np.abs(found.values).max()


def test_what_does_not_exist_is_named(tiny_checkpoint):
    trace = transformer.trace(tiny_checkpoint("gpt"), SENTENCE)
    with pytest.raises(ValueError, match="there is no head 99"):
        score_sources(trace, "decoder", 0, "self", head=99, query=0, key=0)
    with pytest.raises(ValueError, match="there is no key token 500"):
        score_sources(trace, "decoder", 0, "self", head=0, query=0, key=0, against=500)
