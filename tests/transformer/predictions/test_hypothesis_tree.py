"""The record of a beam search: what is kept, pruned and finished; and recording changes nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import transformer
from tests.figures import small_tree
from tests.transformer.tiny import random_model
from transformer.predictions import hypothesis_tree as module
from transformer.predictions.hypothesis_tree import BeamNode, BeamRecorder, BeamTree, beam_tree
from transformer.runs.beam_search import beam_search
from transformer.runs.decoding_state import NEVER_WRITTEN
from transformer.runs.decoding_strategies import Beam, length_penalty
from transformer.text.tokenizer import END_ID, START_ID


def nodes_of(tree: BeamTree, step: int) -> list[BeamNode]:
    return [node for node in tree.nodes if node.step == step]


def check_step(tree: BeamTree, step: int, width: int, n_words: int) -> None:
    """Check that a step keeps the best texts, prunes the others, and counts those that end apart."""
    nodes = nodes_of(tree, step)
    alive = [node for node in nodes if node.fate == (module.OPEN if step == tree.n_steps else module.KEPT)]
    pruned, finished = ([node for node in nodes if node.fate == fate] for fate in (module.PRUNED, module.FINISHED))
    assert len(alive) + len(pruned) + len(finished) == len(nodes) and len(alive) <= width
    assert all(node.id == END_ID for node in finished) and not any(node.id == END_ID for node in (*alive, *pruned))
    by_total = sorted(alive, key=lambda node: -node.total)
    assert [node.rank for node in by_total] == list(range(1, len(alive) + 1))
    assert not pruned or max(node.total for node in pruned) <= by_total[-1].total
    for parent in {node.parent for node in nodes}:
        before = tree.nodes[parent] if parent >= 0 else None
        assert before is None or before.fate == module.KEPT
        children = [node for node in nodes if node.parent == parent]
        assert len([node for node in children if node.fate != module.FINISHED]) >= min(width, n_words)
        for node in children:
            assert node.total == pytest.approx((before.total if before else 0.0) + node.log_p, abs=1e-5)


N_WORDS = 7 - len(NEVER_WRITTEN) - 1  # of the tiny vocabulary, without </s>


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
            with pytest.raises(KeyError):
                tree.path_of((END_ID, END_ID))
            for step in range(1, tree.n_steps + 1):
                check_step(tree, step, width, n_words=1 if step <= len(forced) else N_WORDS)


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
        assert [node.fate for node in nodes_of(tree, step)] == ["kept"]
    assert len(nodes_of(tree, tree.n_forced + 1)) > 3


def test_how_close_the_output_came_to_being_pruned() -> None:
    tree = small_tree()
    assert tree.lowest is not None
    assert tree.lowest.display == "·<b>" and tree.lowest.rank == 2, "the ending does not count"
    assert replace(tree, n_forced=9).lowest is None, "nothing but what was given"
    assert [tree.count(fate) for fate in ("kept", "open", "finished", "pruned")] == [2, 2, 2, 3]
