"""The alignment loss by hand, links of tokens, and a head that learns them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

import transformer
from tests.transformer.tiny import random_model
from tests.transformer.training.test_trainer import assert_same, everything, recipe, sentences, train
from tests.transformer.training.test_trainer import data as data  # a fixture
from transformer import Tokenizer
from transformer.probes import record
from transformer.training.objectives import Translation
from transformer.training.recipe import Alignment
from transformer.training.taught_head import TaughtTranslation
from transformer.training.word_links import corpus_links, found_links, grow_diagonal, token_links, words

EXAMPLES = [
    ([4, 9, 17, 2], [1, 7, 19, 11, 2], ((0, 0), (1, 0), (2, 2))),
    ([5, 2], [1, 8, 2], ((0, 0),)),
]


def test_the_loss_is_that_of_a_plain_loop() -> None:
    model = random_model()
    objective = TaughtTranslation(model, layer=1, head=0, weight=0.05, rate=1.0).eval()
    batch = objective.collate(EXAMPLES, torch.Generator())
    with torch.no_grad():
        loss, count = objective(batch)
        plain, same = Translation(model).eval()(batch)
    expected = 0.0
    for source, target, links in EXAMPLES:
        with torch.no_grad(), record() as recording:
            model(torch.tensor([source]), torch.tensor([target[:-1]]))
        weights = recording.tensors["decoder.layers.1.cross_attention.weights"][0, 0]
        for row in range(len(target) - 1):
            own = [s for s, t in links if t == row]
            for s in own:
                expected -= 1 / len(own) * math.log(float(weights[row, s]))
    assert count == same
    assert float(loss - plain) == pytest.approx(0.05 * expected, rel=1e-3)


def test_the_gradient_goes_to_the_taught_head_alone() -> None:
    model = random_model()
    objective = TaughtTranslation(model, layer=1, head=1, weight=1.0, rate=3.0).eval()
    batch = objective.collate(EXAMPLES, torch.Generator())
    objective.hidden_and_targets(batch)
    attention = model.decoder.layers[1].cross_attention
    (gradient,) = torch.autograd.grad(objective._alignment_loss, attention.query_projection.weight)
    by_head = gradient.view(2, -1).abs().sum(dim=1)
    assert by_head[0] == 0 and by_head[1] > 0
    groups = objective.parameter_groups()
    assert [group["rate"] for group in groups] == [1.0, 3.0]
    assert sum(len(group["params"]) for group in groups) == len(list(model.parameters()))
    assert {id(p) for p in groups[1]["params"]} >= {id(attention.query_projection.weight)}


def test_links_of_words_become_links_of_tokens() -> None:
    text = ("I don't see the café.", "Je ne vois pas l’école.")
    tokenizer = Tokenizer.train([text[0]], 262)  # nearly every byte is a token
    source = [*tokenizer.encode(text[0]), 2]
    target = [1, *tokenizer.encode(text[1]), 2]
    one, other = words(text[0]), words(text[1])
    assert other == ["je", "ne", "vois", "pas", "l'", "école", "."]
    for s, t in ((one.index("see"), 2), (one.index("café"), 5), (len(one) - 1, 6)):
        links = token_links(tokenizer, (*text, [(s, t)]), source, target)
        places, rows = sorted({place for place, _ in links}), sorted({row for _, row in links})
        assert tokenizer.decode([source[place] for place in places]).strip().lower() == one[s]
        assert tokenizer.decode([target[row + 1] for row in rows]).strip().lower() == other[t]


def test_two_directions_grow_together() -> None:
    forward, backward = {(0, 0), (1, 1), (2, 1), (0, 3)}, {(0, 0), (1, 1), (2, 2)}
    # (2, 1) and (2, 2) both touch (1, 1), and word 2 is free until the first of them has it; target 2 is free still.
    assert grow_diagonal(forward, backward) == {(0, 0), (1, 1), (2, 1), (2, 2)}
    assert grow_diagonal({(0, 0)}, {(1, 1)}) == set()


def test_a_corpus_aligns_itself_and_keeps_the_links_in_a_file(tmp_path: Path) -> None:
    pairs = sentences()
    found = found_links([(words(source), words(target)) for source, target in pairs])
    right = sum((3, 3) in links for links in found)
    assert right > 0.9 * len(pairs)  # cat–chat, dog–chien, …
    written = corpus_links(pairs, tmp_path)
    assert [set(links) for links in written] == found
    (tmp_path / "alignments.txt").write_text("0-0\n" * len(pairs))
    assert corpus_links(pairs, tmp_path) == [((0, 0),)] * len(pairs), "the file is read, where there is one"
    with pytest.raises(ValueError, match="has 48 lines, but the corpus has 3 pairs; remove the file"):
        corpus_links(pairs[:3], tmp_path)


def test_a_run_teaches_its_head_and_goes_on_exactly_where_it_was_stopped(data: Path, tmp_path: Path) -> None:
    settings = recipe(alignment=Alignment(layer=0, head=1, weight=0.5), snapshots=())
    whole = train(data, tmp_path / "whole", settings)
    for stop in (1, 6):
        train(data, tmp_path / "stopped", settings, stop_after=stop)
    assert_same(everything(train(data, tmp_path / "stopped", settings)), everything(whole))


def test_the_taught_head_looks_where_the_links_are(data: Path, tmp_path: Path) -> None:
    settings = recipe(
        alignment=Alignment(layer=0, head=1, weight=1.0), steps=60, evaluate_every=60, average_decay=0.0,
        learning_rate=2e-2, snapshots=(), model={"dropout": 0.0},
    )  # fmt: skip
    trainer = train(data, tmp_path, settings)
    objective = trainer._own_objective.eval()
    batch = objective.collate(trainer.train_examples, torch.Generator())
    with torch.no_grad(), record() as recording:
        Translation.hidden_and_targets(objective, batch)
    weights = recording.tensors["decoder.layers.0.cross_attention.weights"]
    linked = batch["links"] > 0
    on_links = (weights * linked[:, None]).sum(dim=(0, 2, 3)) / linked.any(dim=-1).sum()
    assert on_links[1] > 0.6 > on_links[0]
    assert transformer.load(tmp_path / "best").config == settings.model
