"""The view model of Heads: which heads are named, their order, and numbers equal to the trace's."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import transformer
from charts.canvas.attention_heads import MAX_NAMED
from charts.toolkit.numbers import percent
from transformer.heads.head_roles import CorpusRole, HeadRole, corpus_roles, sentence_roles
from transformer.heads.role_files import load_corpus_roles
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
    place_of,
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


def test_the_page_opens_with_each_look_once_and_active_roles_first() -> None:
    heads = ranked(*ROLES)
    assert list(map(place_of, heads.with_role)) == [(1, 1), (0, 1)]
    assert heads.opened_with() == ((1, 1), (1, 0), (0, 1)), "one role; one at rest; the second head with the first role"
    more = [head(2, 0, "repeated", repeated=0.55), head(2, 1, "diagonal", diagonal=0.7), head(2, 2, "broad")]
    heads = ranked(*ROLES, *more)
    assert heads.opened_with() == ((1, 1), (2, 1), (2, 0)), "three roles, the strongest head of each"
    assert list(map(place_of, heads.at_rest)) == [(1, 0)]
    assert list(map(place_of, heads.clear)) == [(1, 1), (1, 0), (2, 1), (0, 1), (2, 0), (2, 2)]


def test_heads_with_a_role_are_shown_other_roles_first_and_none_without_one() -> None:
    """Two of three large maps were of heads without a role, where seven heads had one."""
    alike = [head(0, index, "diagonal", diagonal=0.9 - index / 10) for index in range(3)]
    alike.append(head(0, 3, "monotone", monotone=0.8))
    others = [head(1, 0, "none", broad=0.6), head(1, 1, "none", sinks=0.5, broad=0.2), head(1, 2, "none", sinks=0.3)]
    heads = ranked(*alike, *others)
    assert heads.contrasts == {(1, 1): "sinks", (1, 0): "broad"}
    assert heads.opened_with() == ((0, 0), (0, 3), (0, 1))
    assert heads.opened_with(fixed=[(1, 1)]) == ((0, 0), (1, 1), (0, 3)), "another look before a role of the same"
    assert heads.opened_with(fixed=[(1, 1), (1, 2)]) == ((0, 0), (1, 1), (1, 2))
    assert heads.opened_with(aligned=[(0, 2)])[0] == (0, 2), "a head that aligns represents the look"
    assert heads.opened_with((0, 3)) == ((0, 3), (0, 0), (0, 1)), "the followed head represents its look"
    assert heads.opened_with((1, 2)) == ((0, 0), (0, 3), (1, 2)), "a head that the reader selected is the last"
    resting = ranked(*alike, *others, head(1, 3, "sink", sink=0.9, sinks=0.9, broad=0.1))
    assert resting.opened_with() == ((0, 0), (1, 3), (0, 3)), "a look of its own comes before another role of the same"
    assert ranked(*alike).opened_with() == ((0, 0), (0, 3), (0, 1)) and not ranked(*alike).contrasts
    assert ranked(alike[0], *others).opened_with() == ((0, 0), (1, 1), (1, 0)), "one role alone, beside what contrasts"


def test_the_followed_head_is_always_shown() -> None:
    more = [head(2, 0, "repeated", repeated=0.55), head(2, 1, "diagonal", diagonal=0.7), head(2, 3, "none", broad=0.9)]
    heads = ranked(*ROLES, *more)
    assert heads.opened_with((2, 0)) == ((1, 1), (2, 1), (2, 0))
    assert heads.opened_with((1, 0)) == ((1, 1), (2, 1), (1, 0)), "its look is not among the first three"
    assert heads.opened_with((2, 3)) == ((1, 1), (2, 1), (2, 3)), "a head without a role, too"
    assert heads.opened_with((0, 1)) == ((0, 1), (2, 1), (2, 0))
    assert heads.opened_with((9, 9)) == heads.opened_with(), "a head that is not shown is not named"


def test_where_no_head_has_a_role_the_sharpest_is_the_first() -> None:
    idle = ranked(head(0, 0, "none", broad=0.8), head(0, 1, "sink", sink=0.9, broad=0.1), head(1, 0, "none", broad=0.4))
    assert idle.opened_with() == ((1, 0), (0, 1), (0, 0)) and not idle.with_role
    assert place_of(ranked(idle.roles[1]).sharpest) == (0, 1), "where all rest, one of them"
    assert unknown(3).is_too_short and unknown(3).opened_with() == ((0, 0),)
    assert not idle.is_too_short


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


def test_three_heads_of_a_translation_visibly_differ_and_each_is_named_by_what_it_does() -> None:
    """Two of three large maps had similar names, and the third, a bright column, had none."""
    checkpoint, text = transformer.load("checkpoints/en-fr"), page_text("heads")
    trace = transformer.trace(checkpoint, EN_FR_CROSS)
    corpus = load_corpus_roles(checkpoint).roles
    heads = heads_view_model(trace, Head("decoder", "cross", 0, 0), corpus=corpus, follows=False)
    assert not heads.is_followed, "where one map fits, it is that of a head with a role"
    words = words_here(heads, text)
    assert heads.named[1:] == ((1, 6), (1, 3))
    titles = [words[place].title for place in heads.named]
    assert titles == ["Often finds the word to translate", "Often looks at the full stop", "Often looks at ‘</s>’"]
    assert len({heads.groups[place] for place in heads.named}) == MOST_NAMED
    first = heads.named[0]
    assert corpus.head("decoder", "cross", *first).measured.strongest == "aligned_next"
    row, column = heads.marked(first)
    assert heads.views[first[0]].weights[first[1], row].argmax() == column
    pair = trace.prediction.displays[row], trace.source.displays[column]
    assert pair in (("·chaque", "·every"), ("·dimanche", "·Sunday")), "a whole word, with another spelling"
    assert words[first].sentence == "To predict ‘{}’, it looks most at ‘{}’.".format(*(word[1:] for word in pair))
    assert first_claim(heads, text) == text["claim_differ"]
    unknown = heads_view_model(trace, Head("decoder", "cross", 0, 0), follows=False)
    assert words_here(unknown, text)[unknown.named[0]].title == text["order_title"], "no test has found an alignment"


def test_a_head_is_said_to_look_at_a_token_as_often_as_it_does() -> None:
    trace, text = transformer.trace(transformer.load("checkpoints/en-fr"), EN_FR_CROSS), page_text("heads")
    heads = heads_view_model(trace, CROSS)
    words = words_here(heads, text)
    active = {place_of(head) for head in heads.heads.with_role}
    assert {place for place in heads.tiles if heads.most_seen(place)[1] >= module.LEAST_FIXED} - active == set(
        heads.fixed
    )
    for place, key in heads.fixed.items():
        rows = heads.views[place[0]].weights[place[1]].argmax(axis=-1) == key
        said = text["keeps_sentence_cross"].format(count=rows.sum(), rows=len(rows))
        assert words[place].sentence == said and heads.marked(place) == (-1, key)
        assert words[place].title.startswith("Mostly" if rows.mean() > 0.5 else "Often")
    follows = heads_view_model(trace, Head("decoder", "cross", 2, 3), HeadsChoices(layers=range(1)), follows=False)
    assert set(follows.fixed) <= set(follows.tiles)


@pytest.mark.parametrize("name", ["gpt-en", "bert-en", "sentiment"])
def test_examples_are_rows_that_do_what_the_title_says(name: str) -> None:
    trace, text = transformer.trace(transformer.load(f"checkpoints/{name}"), EN_FR_CROSS), page_text("heads")
    heads = heads_view_model(trace, Head(*trace.attention_kinds()[-1], 0, 0), follows=False)
    assert len({heads.groups[place] for place in heads.named}) == MOST_NAMED, "three heads that visibly differ"
    steps = {"previous": -1, "next": 1, "same": 0}
    seen = 0
    for place, group in heads.groups.items():
        edge = heads.example(place)
        if group in steps:
            seen += 1
            weights = heads.views[place[0]].weights[place[1], edge.query]
            assert weights.argmax() == edge.key == edge.query + steps[group]
            assert text["role_title"][group] == words_here(heads, text)[place].title
        else:
            assert edge is None if group == "broad" else edge.key == heads.fixed[place]
        if group == "broad":
            row, most = heads.most_even_row(place)
            assert most == heads.views[place[0]].weights[place[1], row].max() < 0.5
            assert percent(math.ceil(100 * most) / 100) in words_here(heads, text)[place].sentence
    assert seen > 1
    assert {role.role for role in heads.roles_here if place_of(role) not in heads.groups} <= {"none"}


def test_colours_mean_one_thing_each_and_their_numbers_add_up() -> None:
    trace, text = transformer.trace(transformer.load("checkpoints/bert-en"), EN_FR_CROSS), page_text("heads")
    heads = heads_view_model(trace, Head("encoder", "self", 0, 0), follows=False)
    colours, legend = grouped(heads, text)
    assert len({colour for _, colour in legend}) == len(legend)
    for said, colour in legend:
        assert said.endswith(f"({sum(one == colour for one in colours.values())})")
    assert [said.partition(" (")[0] for said, _ in legend[:2]] == [text["group"]["previous"], text["group"]["next"]]
    assert set(colours) == set(heads.groups)


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
