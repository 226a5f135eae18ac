"""The statements of the lesson “Who wrote this word?” about en-fr-sharp hold, recomputed."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from tests.ui.test_lesson_claims import CAT, checkpoint, right, step, trace  # noqa: F401  (two are fixtures)
from transformer.attribution.direct_logit_attribution import Attribution, attribute, strongest_sources
from transformer.interventions.activation_patching import contrast, head_places, recovered_shares, token_places
from transformer.interventions.direct_effects import is_removable, remove_parts
from transformer.interventions.head_importance import head_effect
from transformer.layers.residual_stream import Part
from views.lens.author import MOST

WROTE = "09-who-wrote-this-word"
BEHIND, HALVED, SPARED = Part("feed_forward", 2), Part("cross_attention", 2, 3), Part("cross_attention", 2, 4)


@pytest.fixture(scope="module")
def chat(trace) -> Attribution:  # noqa: F811
    assert (trace.target.displays[1], trace.prediction.displays[1]) == ("·Le", "·chat")
    return attribute(trace, 1)


def near(number: float, said: str, text: str) -> None:
    assert said in text and abs(number) == pytest.approx(float(said), abs=0.5 * 10.0 ** -len(said.partition(".")[2]))


def test_the_sum_and_the_rival(checkpoint, trace, chat) -> None:  # noqa: F811
    told = step(WROTE, 1, sentence=CAT).explanation
    assert chat.strongest(1) == (BEHIND,) and len(chat.parts) == 59 and "59 parts" in told
    near(chat.of(BEHIND), "2.5", told)
    near(chat.logit, "14", told)
    assert right(WROTE, 1, sentence=CAT) == "the feed-forward layer of layer 2"
    (rival,) = checkpoint.tokenizer.encode("chien")
    assert step(WROTE, 2, sentence=CAT).options["lens_against"] == checkpoint.tokenizer.display(rival)
    both = attribute(trace, 1, against=rival)
    told, kept = step(WROTE, 2, sentence=CAT), {part: both.of(part) / chat.of(part) for part in chat.parts}
    heads = [part for part in chat.strongest(len(chat.parts)) if part.head >= 0]
    assert {HALVED, SPARED} <= set(heads[:3]) and "among the three heads" in told.question
    assert 0.5 < kept[BEHIND] < 2 / 3 and "little more than half" in told.notice
    assert 0.9 < kept[SPARED] < 1.05 and "more than nine tenths" in told.explanation
    near(kept[HALVED], "0.5", "head 3 about half: 0.5")
    assert right(WROTE, 2, sentence=CAT) == "head 4"


def test_the_strongest_sources_are_the_cat(trace, chat) -> None:  # noqa: F811
    strongest = strongest_sources(trace, chat, most=8)
    assert {source.display for source in strongest} == {"·cat"} and len({source.part for source in strongest}) == 8
    assert right(WROTE, 3, sentence=CAT) == "`·cat`"


def test_what_spoke_was_not_needed(checkpoint, trace, chat) -> None:  # noqa: F811
    strongest = [part for part in chat.strongest(len(chat.parts)) if is_removable(part)][:MOST]
    found = remove_parts(trace, chat, [part for part in chat.parts if part in strongest])
    place, told = found.parts.index(SPARED), step(WROTE, 4, sentence=CAT)
    assert MOST == 12 and "Twelve parts" in told.do
    near(found.added[place], "0.7", told.do)
    assert -0.2 < found.zero[place] < -0.05, "the logit rises a little"
    assert 0 < found.agreement < 0.7 and "below 0.7" in told.explanation
    (behind, change), *_ = found.answers(place)
    assert behind == BEHIND and change > 0
    without = transformer.trace(
        checkpoint, CAT, trace.text, edits=[transformer.ablate_head("decoder", layer=2, kind="cross", head=4)]
    )
    sigma = [one.values("decoder.final_norm.std")[1] for one in (trace, without)]
    assert sigma[1] < sigma[0]
    assert right(WROTE, 4, sentence=CAT) == "nothing: it even rises a little"


def test_what_is_put_back(trace) -> None:  # noqa: F811
    both = contrast(trace, step(WROTE, 5, sentence=CAT).options["second"])
    turn = both.most_changed_turn
    assert [both.checkpoint.tokenizer.display(id) for id in (turn.answer, turn.other)] == ["·chat", "·chien"]
    places = token_places(both, turn, "encoder")
    shares = {row[0]: values for row, values in zip(places, recovered_shares(both, turn, places), strict=True)}
    before_two = next(values for place, values in shares.items() if (place.part, place.layer) == ("residual", 2))
    assert 0.98 < before_two[1] < 1.01 and "More than 0.98" in step(WROTE, 5, sentence=CAT).explanation
    assert np.abs(np.delete(before_two, 1)).max() < 0.05 and both.clean["encoder"].displays[1] == "·cat"
    assert right(WROTE, 5, sentence=CAT) == "`·cat`"
    alone = recovered_shares(both, turn, head_places(both, "decoder"))
    assert alone.max() < 1 / 8 and right(WROTE, 6, sentence=CAT) == "less than an eighth"
    places = token_places(both, turn, "decoder")
    crossed = [row for row in places if (row[0].part, row[0].layer) == ("cross_attention", 2)]
    near(recovered_shares(both, turn, crossed)[0, 1], "0.5", step(WROTE, 6, sentence=CAT).notice)


def test_what_the_maps_do_not_tell(trace) -> None:  # noqa: F811
    assert trace.attention("decoder", 1, "cross").weights[:, 1, 1].min() > 0.98
    told = step(WROTE, 7, sentence=CAT)
    assert (told.focus["kind"], told.focus["layer"], told.focus["head"]) == ("cross", 1, 6)
    effects = [np.exp(head_effect(trace, "decoder", 1, "cross", head=head).change) for head in (6, 7)]
    assert 1 <= effects[0] < 1.1 and "Without head 6 the output is no less probable" in told.explanation
    assert (
        effects[1] == pytest.approx(3 / 4, abs=0.06)
        and "Without head 7 it has about three quarters" in told.explanation
    )
    assert right(WROTE, 7, sentence=CAT) == "how much the output depends on the head"
