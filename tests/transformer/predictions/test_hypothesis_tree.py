"""The record of a beam search: known pruning for given probabilities, and recording changes nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

import transformer
from tests.figures import small_tree
from tests.transformer.tiny import random_model
from transformer.predictions import hypothesis_tree as module
from transformer.predictions.hypothesis_tree import BeamRecorder, BeamTree, beam_tree
from transformer.runs.beam_search import beam_search
from transformer.runs.decoding_state import NEVER_WRITTEN
from transformer.runs.decoding_strategies import Beam, length_penalty
from transformer.text.tokenizer import END_ID, START_ID

A, B, C = 4, 5, 6
NAMES = {END_ID: "</s>", A: "a", B: "b", C: "c"}

# Probabilities of continuations. Greedy takes a (0.5) and then loses: a is followed by nothing better than 0.4.
CHANCES = {
    (): {A: 0.5, B: 0.4, C: 0.1},
    (A,): {A: 0.4, B: 0.3, C: 0.2, END_ID: 0.1},
    (B,): {A: 0.05, B: 0.05, C: 0.85, END_ID: 0.05},
    (B, C): {A: 0.04, B: 0.03, C: 0.03, END_ID: 0.9},
    (A, A): {A: 0.3, B: 0.3, C: 0.2, END_ID: 0.2},
}


class Stub:
    """Replacement for ``DecodingState``: the logits of a text are the logarithms of ``CHANCES``."""

    def __init__(self, *_: object, **__: object) -> None:
        self.texts: list[tuple[int, ...]] = []

    def feed(self, ids: torch.Tensor) -> torch.Tensor:
        last = ids[:, -1].tolist()
        self.texts = [(*text, id) for text, id in zip(self.texts, last, strict=True)] if self.texts else [()]
        logits = torch.full((len(self.texts), 7), -torch.inf)
        for row, text in enumerate(self.texts):
            for id, chance in CHANCES.get(text, {END_ID: 1.0}).items():
                logits[row, id] = math.log(chance)
        return logits

    def select(self, rows: torch.Tensor) -> None:
        self.texts = [self.texts[row] for row in rows.tolist()]


@pytest.fixture
def tree(monkeypatch: pytest.MonkeyPatch) -> BeamTree:
    monkeypatch.setattr("transformer.runs.beam_search.DecodingState", Stub)
    recorder, strategy = BeamRecorder(width=2, ends=(END_ID,)), Beam(2, length_penalty=0.0)
    model = SimpleNamespace(device=torch.device("cpu"))
    found = beam_search(model, None, [START_ID], strategy, 10, recorder=recorder)
    return recorder.tree(found, strategy=strategy, display=NAMES.__getitem__)


def fates(tree: BeamTree, step: int) -> dict[str, str]:
    return {"".join(node.display for node in tree.path(node.index)): node.fate for node in tree.at(step)}


def test_a_search_whose_pruning_is_known(tree: BeamTree) -> None:
    assert fates(tree, 1) == {"a": "kept", "b": "kept"}
    # bc 0.34 and aa 0.2 stay; ab 0.15 and ba 0.02 (or bb) are pruned; a and b could also end there.
    assert fates(tree, 2) == {
        "aa": "kept", "ab": "pruned", "a</s>": "finished", "bc": "kept", "ba": "pruned", "b</s>": "finished",
    }  # fmt: skip
    # bc</s> has 0.306, and the best unfinished text only 0.06: nothing can overtake, so the search ends.
    third = fates(tree, 3)
    assert third["bc</s>"] == third["aa</s>"] == "finished"
    assert third["aaa"] == third["aab"] == "open"
    assert third["bca"] == "pruned"
    assert tree.n_steps == 3
    assert "".join(node.display for node in tree.winner) == "bc</s>"


def test_its_numbers(tree: BeamTree) -> None:
    b, c, end = tree.winner
    assert math.exp(c.log_p) == pytest.approx(0.85)
    assert math.exp(end.total) == pytest.approx(0.4 * 0.85 * 0.9)
    assert [b.rank, c.rank, end.rank] == [2, 1, 1], "second at first, then the best; first of all finished texts"
    ranks = {"".join(n.display for n in tree.path(n.index)): n.rank for n in tree.at(2) if n.fate != "finished"}
    assert ranks == {"bc": 1, "aa": 2, "ab": 3, "ba": 5}, "4 is ac, which its own text's better two keep out of sight"
    assert tree.winner[-1].total == pytest.approx(tree.hypotheses[0].log_probability)
    finished = sorted((node for node in tree.nodes if node.fate == "finished"), key=lambda node: node.rank)
    assert [node.rank for node in finished] == list(range(1, len(finished) + 1))
    assert [node.score for node in finished] == sorted((node.score for node in finished), reverse=True)


def test_a_text_that_was_never_met_is_named(tree: BeamTree) -> None:
    assert [node.display for node in tree.path_of((A, B))] == ["a", "b"]
    with pytest.raises(ValueError, match=r"never met the text \(6, 4\)"):
        tree.path_of((C, A))


@pytest.mark.parametrize("width", (1, 2, 4, 50))
@pytest.mark.parametrize("kind", ("encoder-decoder", "decoder-only"))
def test_looking_on_changes_nothing(kind: str, width: int) -> None:
    for seed in (3, 9, 22):
        model = random_model(kind, seed=seed, vocabulary_size=7, tie_embeddings=False)
        source = torch.tensor([[4, 6, 5, 4, 6, 2]]) if kind == "encoder-decoder" else None
        for forced in ((), (5, 3)):
            given = {"forced": forced, "banned": NEVER_WRITTEN}
            recorder = BeamRecorder(width=width, ends=(END_ID,))
            with torch.inference_mode():
                plain = beam_search(model, source, [START_ID], Beam(width), 5, **given)
                watched = beam_search(model, source, [START_ID], Beam(width), 5, recorder=recorder, **given)
            assert plain == watched, "bitwise, scores and all"
            tree = recorder.tree(watched, strategy=Beam(width))
            for text in watched:
                assert tree.path_of(text.ids)[-1].total == text.log_probability
                assert tree.path_of(text.ids)[-1].score == text.score
            for step in range(1, tree.n_steps + 1):
                alive = [node for node in tree.at(step) if node.fate in (module.KEPT, module.OPEN)]
                assert len(alive) <= width
                assert sorted(node.rank for node in alive) == list(range(1, len(alive) + 1))
                worst = min((node.total for node in alive), default=-math.inf)
                assert all(node.total <= worst for node in tree.at(step) if node.fate == module.PRUNED)
                assert all(tree.nodes[n.parent].fate == module.KEPT for n in tree.at(step) if n.parent >= 0)


@pytest.mark.parametrize("name", ("translator", "gpt"))
def test_of_a_checkpoint_it_is_what_decode_finds(tiny_checkpoint, name: str) -> None:
    checkpoint, strategy = tiny_checkpoint(name), Beam(3, max_new_tokens=12)
    tree = beam_tree(checkpoint, "The cat sat.", strategy)
    written = transformer.decode(checkpoint, "The cat sat.", strategy)
    assert tree.hypotheses == written.hypotheses
    assert tuple(node.id for node in tree.winner) == written.tokens.ids
    assert tuple(node.display for node in tree.winner) == written.tokens.displays
    assert tree.winner[-1].score == written.hypotheses[0].score
    assert tree.winner[-1].score == pytest.approx(
        written.log_probability / length_penalty(len(written.tokens), 0.6), rel=1e-4
    )


def test_a_forced_beginning_is_one_branch(tiny_checkpoint) -> None:
    tree = beam_tree(tiny_checkpoint("translator"), "The cat sat.", Beam(3, max_new_tokens=8), forced="Le chat")
    assert tree.n_forced > 1
    for step in range(1, tree.n_forced + 1):
        assert [node.fate for node in tree.at(step)] == ["kept"]
    assert len(tree.at(tree.n_forced + 1)) > 3


def test_how_close_the_output_came_to_being_pruned() -> None:
    tree = small_tree()
    assert tree.lowest is not None
    assert tree.lowest.display == "·<b>" and tree.lowest.rank == 2, "the ending does not count"
    assert replace(tree, n_forced=9).lowest is None, "nothing but what was given"
    assert {fate: tree.count(fate) for fate in ("kept", "open", "finished", "pruned")} == {
        "kept": 2,
        "open": 2,
        "finished": 2,
        "pruned": 3,
    }
