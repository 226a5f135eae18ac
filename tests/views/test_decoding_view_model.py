"""The view models of Decoding: their numbers equal the library's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

import transformer
from tests.conftest import ROOT
from tests.figures import small_tree
from transformer.attribution.leave_one_out import leave_one_out
from transformer.predictions.answer_probabilities import blanks
from transformer.predictions.decoding_steps import step_attention
from transformer.predictions.hypothesis_tree import beam_tree
from transformer.runs.masked_word import masked_word
from transformer.runs.run import Run
from views.decoding.decoding_view_model import (
    MOST_BRANCHES,
    ORIGINAL,
    AlignedWords,
    Branch,
    ComparedTexts,
    DecodingChoices,
    FilledBlank,
    Location,
    SearchedTree,
    Verdict,
    WrittenText,
    given_of,
    read_branches,
    write_branches,
)

SENTENCE = "The old man told us a story."
WRITERS = ("translator", "gpt")


def written(run: Run, choices: DecodingChoices, *, forced: tuple[int, ...] = ()) -> transformer.Decoding:
    return transformer.decode(
        run.checkpoint, run.sentence, choices.writes_by, forced=forced or run.target or "", record_steps=True
    )


def text_of(run: Run, location: Location = Location(), **chosen: object) -> WrittenText:  # noqa: B008  (frozen)
    choices = DecodingChoices(**chosen)
    forced = {(), choices.branch.forced, *(branch.forced for branch in choices.branches)}
    return WrittenText(run, location, choices, {ids: written(run, choices, forced=ids) for ids in forced})


@pytest.mark.parametrize(
    ("name", "sentence", "chosen", "other"),
    [
        ("en-fr", "My grandmother bakes apple pie every Sunday.", "·chaque", "·tous"),
        ("en-fr", "I love you.", "aime", "adore"),
        ("gpt-en", "My grandmother bakes", "·garden", "·park"),
    ],
)
def test_it_opens_where_a_word_is_chosen_from_words(name: str, sentence: str, chosen: str, other: str) -> None:
    here = text_of(Run(transformer.load(ROOT / "checkpoints" / name), sentence)).here
    assert [one.display for one in here.candidates[:2]] == [chosen, other]
    assert here.chosen.display == chosen


@pytest.mark.parametrize("kind", WRITERS)
def test_each_step_is_that_of_the_decoding(tiny_checkpoint: Callable, kind: str) -> None:
    checkpoint = tiny_checkpoint(kind)
    text = text_of(Run(checkpoint, SENTENCE), Location(layer=1, head=1), step=2, one_head=True)
    decoding = transformer.decode(checkpoint, SENTENCE, record_steps=True)
    assert [step.chosen.id for step in text.steps] == list(decoding.tokens.ids)
    assert text.here == text.steps[2] and text.here.how == "greedy" and text.steps[0].before == text.text_before(0)
    for step, of in zip(text.steps, decoding.steps, strict=True):
        assert step.rank == 1 + int((of.logits > of.logits[of.chosen.id]).sum())
        assert step.rest == pytest.approx(1 - sum(one.probability for one in step.candidates), abs=1e-6)
    kinds = ("cross", "self") if kind == "translator" else ("self",)
    assert text.kind == kinds[0] and text.head == 1
    for attention in kinds:
        seen = replace(text, choices=replace(text.choices, attention_kind=attention)).attention_at(2)
        found = step_attention(checkpoint, decoding, SENTENCE, step=2, layer=1, kind=attention)
        np.testing.assert_array_equal(seen.of(1), found.weights[1])
    assert text.confidence.log_probability == pytest.approx(decoding.log_probability, rel=1e-4)
    assert len(text.others) == len(decoding.steps[2].candidates) - 1


def test_a_step_beyond_the_end_is_the_last_and_a_layer_of_the_other_stack_fits(tiny_checkpoint: Callable) -> None:
    text = text_of(Run(tiny_checkpoint("translator"), SENTENCE), Location(layer=99), step=999)
    assert text.step == len(text.decoding.steps) - 1
    assert text.layer == text.checkpoint.config.n_decoder_layers - 1
    with pytest.raises(FrozenInstanceError):
        text.location = Location()


def test_what_was_given_kept_and_forced_is_told_apart(tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint("translator")
    given = text_of(Run(checkpoint, SENTENCE, "Le vieil"))
    assert given.given == "Le vieil" and 0 < given.n_given < len(given.steps)
    assert [step.how.startswith("given") for step in given.steps] == [
        index < given.n_given for index in range(len(given.steps))
    ]
    assert given_of(Run(checkpoint, SENTENCE, "  ")) == given_of(Run(checkpoint, SENTENCE)) == ""
    original = text_of(Run(checkpoint, SENTENCE))
    other = next(one.id for one in original.decoding.steps[2].candidates if one.id != original.decoding.tokens.ids[2])
    branch = Branch(original.decoding.tokens.ids[:2], (other,))
    text = text_of(Run(checkpoint, SENTENCE), branches=(branch,), branch=branch)
    assert [step.how for step in text.steps[:4]] == ["kept", "kept", "forced", "greedy"]
    assert text.n_given == 3 and text.original.text == original.decoding.text
    (first, _, numbers), (second, decoding, its) = text.compared
    assert (first, second) == (ORIGINAL, branch) and decoding.tokens.ids[:3] == branch.forced
    assert numbers.total == original.decoding.log_probability and its.each == its.total / its.count


def test_sampling_reshapes_the_step_that_is_read(tiny_checkpoint: Callable) -> None:
    run = Run(tiny_checkpoint("gpt"), SENTENCE)
    text = text_of(run, strategy="sampling", seed=7, temperature=1.5, top_k=5, step=1)
    strategy = transformer.Sample(1.5, 5, seed=7)
    assert text.choices.writes_by == strategy and text.steps[1].how == "sampling"
    assert text.decoding.text == transformer.decode(run.checkpoint, SENTENCE, strategy).text
    assert text.reshaped.n_kept == 5
    assert DecodingChoices(temperature=2.0).writes_by == transformer.Greedy(), "reshaping does not change it"
    greedy = text_of(run, temperature=2.0, top_k=3)
    assert greedy.reshaped.n_kept == 3 and greedy.decoding.text == transformer.decode(run.checkpoint, SENTENCE).text


def test_branches_are_read_as_they_are_written(tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint("translator")
    branches = (Branch((), (300,)), Branch((5, 17), (300, 301)))
    assert write_branches(branches) == "-300,5.17-300.301"
    assert read_branches(write_branches(branches), checkpoint) == branches
    assert read_branches("", checkpoint) == ()
    end, pad = checkpoint.framing.ends[0], checkpoint.special.pad
    impossible = f"7-,9.x-3,5-99999999,{end}-5,5-{pad},٣-5,5"
    assert read_branches(impossible, checkpoint) == ()
    assert len(read_branches(",".join(f"-{id}" for id in range(300, 330)), checkpoint)) == MOST_BRANCHES


def test_the_strategies_are_compared_by_the_model_own_log_probability(tiny_checkpoint: Callable) -> None:
    run = Run(tiny_checkpoint("translator"), SENTENCE)
    choices = DecodingChoices(seed=3, temperature=1.2, beam_width=3, length_penalty=1.0)
    texts = {name: transformer.decode(run.checkpoint, SENTENCE, how) for name, how in choices.compared.items()}
    shown = ComparedTexts(run, Location(), choices, texts)
    for name, text in texts.items():
        assert shown.log_probabilities[name].sum() == pytest.approx(text.log_probability, rel=1e-4)
        assert shown.numbers[name].score == pytest.approx(text.log_probability / ((5 + len(text.tokens)) / 6))
    assert shown.is_greedy("greedy")
    factor = np.exp(texts["beam"].log_probability - texts["greedy"].log_probability)
    likelier = replace(shown, texts={**texts, "greedy": texts["sampling"]}).verdict if factor == 1 else shown.verdict
    assert likelier[0] in ("likelier", "less_likely") and likelier[1] >= 1
    assert replace(shown, texts={**texts, "beam": texts["greedy"]}).verdict == ("same", 1.0)
    swapped = replace(shown, texts={**texts, "beam": texts["greedy"], "greedy": texts["beam"]}).verdict
    assert swapped[1] == pytest.approx(shown.verdict[1]), "the factor does not depend on the direction"


def test_the_tree_counts_every_branch_and_draws_a_window(tiny_checkpoint: Callable) -> None:
    run = Run(tiny_checkpoint("translator"), SENTENCE)
    choices = DecodingChoices(beam_width=2, first_step=99)
    tree = beam_tree(run.checkpoint, SENTENCE, choices.beam)
    shown = SearchedTree(run, Location(), choices, tree)
    assert shown.counts["count"] == len(tree.nodes) > shown.counts["pruned"] > 0
    assert 1 <= shown.first == shown.first_steps and shown.first + shown.n_drawn - 1 == tree.n_steps
    assert replace(shown, choices=DecodingChoices()).first == 1
    lowest = replace(shown, tree=small_tree()).lowest
    assert lowest.display == "·<b>" and lowest.rank == 2, "the ending does not count"
    assert replace(shown, tree=replace(small_tree(), n_forced=9)).lowest is None, "nothing but what was given"
    for text, numbers in zip(tree.hypotheses, shown.numbers, strict=True):
        assert numbers.score == pytest.approx(text.score)


def test_words_are_aligned_in_the_best_layer_until_another_is_chosen(tiny_checkpoint: Callable) -> None:
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE, target="Le vieil homme dort.")
    shown = AlignedWords(trace.run, Location(layer=1, head=1), DecodingChoices(), trace, best_layer=0)
    assert shown.layer == 0 and not shown.layer_is_chosen and shown.head is None
    assert replace(shown, best_layer=None).layer == 1
    chosen = replace(shown, choices=DecodingChoices(alignment_layer="chosen", one_head=True))
    assert chosen.layer == 1 and chosen.layer_is_chosen and chosen.head == 1
    assert not np.array_equal(chosen.found.weights, shown.found.weights)
    weights = shown.found.weights
    for row, (best, second) in enumerate(zip(shown.best, shown.second, strict=True)):
        assert not shown.found.special[best] and best != second
        assert weights[row, second] == np.delete(weights[row], best).max()


def test_the_blank_at_the_followed_token_is_answered_until_one_is_chosen(tiny_checkpoint: Callable) -> None:
    trace = transformer.trace(tiny_checkpoint("bert"), "The ___ sat on the [MASK].")
    first, second = blanks(trace)
    shown = FilledBlank(trace.run, Location(token=second), DecodingChoices(), trace)
    assert shown.position == second
    assert replace(shown, location=Location(token=0)).position == first
    assert replace(shown, choices=DecodingChoices(blank=first)).position == first
    assert replace(shown, choices=DecodingChoices(blank=999)).position == second
    assert shown.coloured == [True] + [False] * (len(shown.fillings.rows) - 1)
    np.testing.assert_array_equal(shown.attention.weights, trace.attention("encoder", 0).weights[:, second])
    whole = transformer.trace(tiny_checkpoint("bert"), "The cat sat.")
    there = FilledBlank(whole.run, Location(token=2), DecodingChoices(), whole)
    assert there.position == 2 and not there.blanks
    ((row, _),) = [
        (row, coloured) for row, coloured in zip(there.fillings.rows, there.coloured, strict=True) if coloured
    ]
    assert row.id == whole.source[2].id


def test_the_masked_word_of_the_typed_text_is_among_the_candidates(tiny_checkpoint: Callable) -> None:
    bert, typed = tiny_checkpoint("bert"), "The old man told us a story."
    trace = transformer.trace(bert, masked_word(bert, typed).sentence)
    shown = FilledBlank(trace.run, Location(), DecodingChoices(), trace, typed)
    assert shown.masked.piece == "·man" and shown.masked in shown.fillings.rows
    assert replace(shown, typed="").masked is None, "a blank that was typed hides no word"


def test_the_verdict_is_the_most_likely_class(tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint("sentiment")
    found = leave_one_out(checkpoint, SENTENCE)
    shown = Verdict(Run(checkpoint, SENTENCE), Location(), DecodingChoices(), found)
    assert shown.class_index == shown.best == int(found.probabilities.argmax())
    other = replace(shown, choices=DecodingChoices(class_index=1 - shown.best))
    np.testing.assert_array_equal(other.contributions, found.contributions[:, 1 - shown.best])
