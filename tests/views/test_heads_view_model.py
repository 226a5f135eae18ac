"""The view model of Heads: which heads are named, their order, and numbers equal to the trace's."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import transformer
from charts.canvas.attention_heads import MAX_NAMED
from charts.toolkit.numbers import percent
from transformer.heads.head_roles import CorpusRole, HeadRole, corpus_roles, sentence_roles
from transformer.runs.head_places import Head
from transformer.runs.traces import Trace
from ui.shell.selectors import text_for
from ui.words.texts import label_in_words, page_text
from views.heads import heads_view_model as module
from views.heads.heads_view_model import (
    MOST_NAMED,
    ORDERS,
    HeadsChoices,
    HeadsViewModel,
    RankedHeads,
    heads_view_model,
)
from views.heads.role_words import chosen_text, first_claim, grouped, image_claim, words_here, words_on_image

DIGIT = "0123456789abcdefg" + "0" * 40 + "g654321"
SENTENCE = "The old man told us a story, and the sea was cold."
SENTENCES = ("The cat sat on the mat.", "She saw the sea, and the sea was cold.", "He told us a story about a dog.")
KINDS = [
    ("translator", "encoder", "self"),
    ("translator", "decoder", "self"),
    ("translator", "decoder", "cross"),
    ("gpt", "decoder", "self"),
    ("bert", "encoder", "self"),
]
CROSS = Head("decoder", "cross", 1, 0)


def head(layer: int, index: int, role: str, **scores: float) -> HeadRole:
    return HeadRole("encoder", "self", layer, index, role, {"broad": 0.5, "sinks": 0.0, **scores})


def ranked(*roles: HeadRole | CorpusRole) -> RankedHeads:
    return RankedHeads(roles)


def unknown(count: int) -> RankedHeads:
    return ranked(*(head(0, index, "none", broad=math.nan, sinks=math.nan) for index in range(count)))


ROLES = (
    head(0, 0, "none", broad=0.9, sinks=0.2),
    head(0, 1, "previous", previous=0.6, broad=0.4, sinks=0.1),
    head(1, 0, "sink", sink=0.8, broad=0.3, sinks=0.8),
    head(1, 1, "previous", previous=0.9, broad=0.1, sinks=0.3),
)


def same(one: object, other: object) -> bool:
    """Return whether roles are equal; an undefined score equals itself."""
    return repr(one) == repr(other)


@pytest.fixture
def trace(tiny_checkpoint: Callable) -> Trace:
    return transformer.trace(tiny_checkpoint("translator"), SENTENCE)


# ---- ranks ----------------------------------------------------------------------------------------------------------


def test_heads_are_sorted_as_the_order_says() -> None:
    heads = ranked(*ROLES)
    assert heads.sorted("layer") is None
    assert heads.sorted("role") == [(1, 1), (0, 1), (1, 0), (0, 0)]
    assert heads.sorted("entropy") == [(1, 1), (1, 0), (0, 1), (0, 0)]
    assert heads.sorted("sinks") == [(1, 0), (1, 1), (0, 0), (0, 1)]
    for order in ORDERS[1:]:
        assert unknown(3).sorted(order) == [(0, 0), (0, 1), (0, 2)], "a sentence that is too short is sorted, too"


def test_steady_heads_come_first_and_heads_without_a_role_last() -> None:
    def over_many(index: int, role: str, shares: dict[str, float], **scores: float) -> CorpusRole:
        scores = {"broad": 0.5, "sinks": 0.1, **scores}
        return CorpusRole("decoder", "self", 0, index, role, shares, scores, dict.fromkeys(scores, 40), 40)

    short = over_many(0, "none", {})
    unclear, often = over_many(1, "none", {"none": 1.0}), over_many(2, "none", {"first": 0.4, "none": 0.25})
    steady = over_many(3, "sink", {"sink": 0.825, "none": 0.175}, sink=0.7)
    assert ranked(short, unclear, often, steady).sorted("consistency") == [(0, 3), (0, 1), (0, 2), (0, 0)]
    measured = [over_many(index, "none", {"none": 1.0}, induction=s) for index, s in enumerate((0.1, 0.6, 0.2))]
    assert ranked(*measured).sorted("induction") == [(0, 1), (0, 2), (0, 0)]


def test_the_chosen_head_comes_first_and_then_other_patterns_by_score() -> None:
    more = [head(2, 0, "repeated", repeated=0.55), head(2, 1, "diagonal", diagonal=0.7), head(2, 3, "none", broad=0.9)]
    heads = ranked(*ROLES, *more)
    assert heads.opened_with((2, 3)) == ((2, 3), (1, 1), (2, 1)), "a head that matches no pattern, too"
    assert heads.opened_with((0, 1)) == ((0, 1), (2, 1), (2, 0)), "no second head of its own pattern"
    assert ranked(*ROLES).opened_with((0, 0)) == ((0, 0), (1, 1), (1, 0)), "heads on fixed positions come last"
    assert ranked(*ROLES).opened_with((1, 1)) == ((1, 1), (1, 0)), "each pattern once"
    assert heads.opened_with((9, 9)) == ((1, 1), (2, 1), (2, 0)), "a head that is not shown"
    assert unknown(3).is_too_short and unknown(3).opened_with((9, 9)) == ((0, 0),)


def test_no_more_heads_are_named_than_the_figure_draws() -> None:
    assert MOST_NAMED == MAX_NAMED


# ---- the page -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "stack", "kind"), KINDS)
def test_its_numbers_are_those_of_the_trace(tiny_checkpoint: Callable, name: str, stack: str, kind: str) -> None:
    trace = transformer.trace(tiny_checkpoint(name), SENTENCE)
    heads = heads_view_model(trace, Head(stack, kind, 1, 1))
    expected = [trace.attention(stack, layer, kind) for layer in range(trace.n_layers(stack))]
    assert [view.name for view in heads.views] == [view.name for view in expected]
    np.testing.assert_array_equal([view.weights for view in heads.views], [view.weights for view in expected])
    assert same(heads.roles_here, tuple(role for view in expected for role in sentence_roles(view)))
    assert same(heads.chosen_here, sentence_roles(expected[1])[1])
    assert heads.tiles == [(0, 0), (0, 1), (1, 0), (1, 1)] and heads.in_table and heads.selected == (1, 1)
    query = heads.queries[-1]
    assert expected[0].allowed[query].sum() > 1
    key = heads.strongest_key(query)
    assert expected[1].weights[1, query, key] == expected[1].weights[1, query].max()
    found = heads.between(query, key)
    expected_weights = [float(weight) for view in expected for weight in view.weights[:, query, key]]
    assert [weight for _, weight in found] == sorted(expected_weights, reverse=True)
    assert all(weight == expected[layer].weights[index, query, key] for (layer, index), weight in found)
    assert heads.even_share(query, key) == pytest.approx(1 / expected[0].allowed[query].sum())
    assert not heads.is_masked(query, key)
    assert heads.is_masked(0, 1) == ((stack, kind) == ("decoder", "self"))


def test_names_order_and_numbers_are_of_many_sentences_once_they_are_asked_for(
    trace: Trace, tiny_checkpoint: Callable
) -> None:
    corpus = corpus_roles(tiny_checkpoint("translator"), SENTENCES)
    here = heads_view_model(trace, CROSS, corpus=corpus)
    assert here.heads.roles == here.roles_here and not here.speaks_of_many
    assert here.chosen_over_many == corpus.head("decoder", "cross", 1, 0), "it is said beside the sentence all the same"
    many = heads_view_model(trace, CROSS, HeadsChoices(scope="corpus", order="consistency"), corpus=corpus)
    assert many.heads.roles == corpus.of("decoder", "cross") and many.speaks_of_many
    assert many.heads.has_tests and many.heads.over_many and not many.in_table
    assert many.tiles == RankedHeads(corpus.of("decoder", "cross")).sorted("consistency")
    older = replace(corpus, heads=tuple(one for one in corpus.heads if one.kind == "self"))
    unknown_here = heads_view_model(trace, CROSS, HeadsChoices(scope="own"), corpus=older)
    assert unknown_here.heads.roles == unknown_here.roles_here, "nothing is known of this kind of attention"
    assert not heads_view_model(trace, CROSS, HeadsChoices(scope="own")).speaks_of_many


def test_some_layers_limit_the_maps(trace: Trace) -> None:
    def chosen(**choices: object) -> HeadsViewModel:
        return heads_view_model(trace, CROSS, HeadsChoices(**choices))

    last = chosen(layers=range(1, 2))
    assert last.tiles == [(1, 0), (1, 1)] and [view.layer for view in last.shown_views] == [1]
    assert last.selected == (1, 0) and chosen(layers=range(1)).selected is None, "what is not shown is not selected"
    assert set(last.named) <= {(1, 0), (1, 1)} and len(last.heads.roles) == 4


def test_heads_that_share_their_keys(family: Callable) -> None:
    checkpoint = family("hf-llama")
    attention = checkpoint.model.decoder.layers[0].self_attention
    size = attention.n_heads // attention.n_key_heads
    trace = transformer.trace(checkpoint, "The cat sat.")
    heads = heads_view_model(trace, Head("decoder", "self", 0, size))
    assert size > 1 and heads.sharing_keys == range(size, 2 * size)


def test_heads_of_the_translator_share_no_keys(trace: Trace) -> None:
    assert heads_view_model(trace, CROSS).sharing_keys == range(1)
    assert heads_view_model(replace(trace, run=None), CROSS).sharing_keys == range(1), "a trace from a file"


def test_what_does_not_exist_is_refused(trace: Trace) -> None:
    with pytest.raises(ValueError, match="head is 9; layer 1 has heads 0 to 1"):
        heads_view_model(trace, Head("decoder", "cross", 1, 9))
    with pytest.raises(ValueError, match="no encoder cross-attention in layer 0"):
        heads_view_model(trace, Head("encoder", "cross", 0, 0))
    with pytest.raises(ValueError, match=r"layers is range\(4, 6\); choose from 0 to 1"):
        heads_view_model(trace, CROSS, HeadsChoices(layers=range(4, 6)))


def test_roles_are_worked_out_once(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(module, "sentence_roles", lambda view: asked.append(view.name) or sentence_roles(view))
    heads = heads_view_model(trace, CROSS)
    for _ in range(2):
        assert heads.named and heads.tiles and heads.chosen_here
    assert asked == [view.name for view in heads.views]


EN_FR_CROSS = "My grandmother bakes apple pie every Sunday."


@pytest.mark.parametrize("name", ["en-fr", "gpt-en", "bert-en", "sentiment"])
def test_headline_legend_and_titles_count_the_same_patterns(name: str) -> None:
    """The headline said "9 go left to right", the legend "the word to translate (5), …"."""
    trace, text = transformer.trace(transformer.load(f"checkpoints/{name}"), EN_FR_CROSS), page_text("heads")
    heads = heads_view_model(trace, Head(*trace.attention_kinds()[-1], 1, 0))
    assert heads.named[0] == heads.place, "the selected head is large"
    patterns = [heads.groups.get(place) for place in heads.named]
    assert 2 <= len(set(patterns)) == len(patterns) <= MOST_NAMED and all(patterns[1:])
    colours, legend = grouped(heads, text)
    assert len({colour for _, colour in legend}) == len(legend)
    for said, colour in legend:
        assert said.endswith(f"({sum(one == colour for one in colours.values())})")
    assert set(colours) == set(heads.groups) and f"**{len(colours)} of these " in first_claim(heads, text)
    words, named = words_here(heads, text), {said.partition(" (")[0] for said, _ in legend[:-1]}
    assert named <= {one.title for one in words.values()}
    for place in heads.tiles:
        cell = heads.marked(place)
        assert (words[place].title == text["no_role"]) == (cell is not None) == (place not in heads.groups)
        if cell is not None:
            view = heads.views[place[0]]
            assert cell == view.strongest_pair(place[1])
            weight = float(view.weights[place[1]][cell])
            assert re.search(rf"\b{int(100 * weight)}(\.\d)?%|{weight:.0%}", words[place].sentence)


def test_over_an_image_only_clear_maps_are_large_and_its_words_are_of_images() -> None:
    """Every large map except the first gives some patch at least 0.4; no text mentions a sentence."""
    checkpoint = transformer.load("checkpoints/vit-digits")
    text = text_for(page_text("heads"), checkpoint.config)
    heads = heads_view_model(transformer.trace(checkpoint, DIGIT), Head("encoder", "self", 0, 2))
    rows = {place: heads.views[place[0]].weights[place[1], 0, 1:].max() for place in heads.tiles}
    assert all(rows[place] >= module.LEAST_CONTRAST for place in heads.named[1:])
    assert min(rows.values()) < module.LEAST_CONTRAST
    assert "class token" in image_claim(heads, text) and "<s>" not in image_claim(heads, text)
    said = chosen_text(heads, text)
    assert "over the rows of all patches" in said and "sentence" not in said and "token" not in said
    plain = page_text("heads")
    assert text["role_does_one"]["sink"] == plain["role_does_one"]["sink"], "what it has no other word for"
    assert text["role_does_one"]["repeated"] != plain["role_does_one"]["repeated"]


def test_a_head_of_an_image_shows_the_row_of_the_followed_token_over_its_patches() -> None:
    """The selected head comes first, and words name the patches with the largest weights."""
    trace = transformer.trace(transformer.load("checkpoints/vit-digits"), DIGIT)
    chosen = Head("encoder", "self", 0, 2)
    heads = heads_view_model(trace, chosen, token=5)
    assert heads.image_row == 5 and heads.named[0] == (0, 2) and len(set(heads.named)) == MOST_NAMED
    weights = np.stack([view.weights for view in heads.views])[:, :, 5]
    for (layer, index), shown in words_on_image(heads, page_text("heads")).items():
        key = int(weights[layer, index].argmax())
        pixels = heads.views[0].key[key].pixels
        assert label_in_words(heads.views[0].key.labels[key]) in shown.sentence
        assert percent(float(weights[layer, index, key])) in shown.sentence
        group = heads.groups[layer, index]
        assert group == ("ink" if any(pixels) else "empty") if pixels else group == "itself"
        assert heads.marked((layer, index)) == (divmod(key - 1, 4) if pixels else None)
    assert heads_view_model(trace, chosen, HeadsChoices(whole=True)).image_row is None
    assert (
        heads_view_model(transformer.trace(transformer.load("checkpoints/bert-en"), SENTENCE), chosen).image_row is None
    )
