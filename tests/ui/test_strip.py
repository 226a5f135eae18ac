"""The strip of tokens: every token of every sequence, and which of them can be clicked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

import transformer
from ui.shell import strip
from ui.shell.events import whole_number
from ui.shell.focus import Focus
from ui.shell.strip import strip_rows
from ui.show.drawings import _hear
from views.decoding import stepper
from views.overview import diagram

REST = partial(_hear, stepper.KEY, "step", whole_number, stepper.rest_at)


@pytest.mark.parametrize("late", [REST, strip._send_choice, diagram._choose_layer])
def test_what_a_page_says_after_it_has_been_left_changes_nothing(late: Callable[[], None]) -> None:
    """A figure reports the reader's resting position with a delay; by then another page may be open."""
    late()  # outside of any run there is no widget state either


def test_the_strip_holds_every_token_as_it_is(tiny_checkpoint) -> None:
    trace = transformer.trace(tiny_checkpoint("translator"), "The <b>cat</b>.", target="Le chat.", source_pads=1)
    source, target = strip_rows(trace, Focus(), choose=False, all_stacks=True)["rows"]
    assert [token["text"] for token in source["tokens"]] == list(trace.source.displays)
    assert [token["title"].split()[-1] for token in target["tokens"]] == [str(token) for token in trace.target.ids]
    assert [token["kind"] for token in source["tokens"]][-2:] == ["special", "special"]
    assert (source["title"], target["title"]) == ("source", "reads")
    assert not source["clickable"]
    assert source["chosen"] is None


def test_only_the_focused_stack_is_clickable_where_the_stack_is_chosen_elsewhere(tiny_checkpoint) -> None:
    trace = transformer.trace(tiny_checkpoint("translator"), "The cat.", target="Le chat.")
    focus = Focus(stack="decoder", token=1)
    (target,) = strip_rows(trace, focus, choose=True, all_stacks=False)["rows"]
    assert (target["title"], target["clickable"], target["chosen"]) == ("reads", True, 1)
    cross = replace(focus, kind="cross")  # inspects the source, which must be readable then
    source, target = strip_rows(trace, cross, choose=True, all_stacks=False)["rows"]
    assert (source["clickable"], source["chosen"]) == (False, None)
    assert (target["clickable"], target["chosen"]) == (True, 1)
    source, _ = strip_rows(trace, focus, choose=True, all_stacks=True)["rows"]
    assert (source["clickable"], source["chosen"]) == (True, None)
    source, target = strip_rows(trace, Focus(), choose=True, all_stacks=True, place=("decoder", 2))["rows"]
    assert (source["chosen"], target["chosen"]) == (None, 2), "the page looks at another place than the focus"


def test_where_rows_are_named_after_predictions_a_chip_is_the_word_that_its_row_bears(tiny_checkpoint) -> None:
    """A reader saw “ange” selected in the strip, and the row “chaque” marked in the map."""
    trace = transformer.trace(tiny_checkpoint("translator"), "The cat.", target="Le chat.")
    focus = Focus(stack="decoder", kind="cross", token=1)
    source, target = strip_rows(trace, focus, choose=True, all_stacks=False, predicted=True)["rows"]
    names = [token["text"] for token in target["tokens"]]
    assert names == list(trace.prediction.displays) and "<s>" not in names and names[-1] == "</s>"
    assert names[target["chosen"]] == trace.prediction.displays[focus.token] != trace.target.displays[focus.token]
    assert target["tokens"][0]["sends"]["token"] == 0, "a click on a name selects the row of this name"
    assert (target["title"], [token["text"] for token in source["tokens"]]) == ("predicts", list(trace.source.displays))


def test_a_model_with_one_stack_has_one_row(tiny_checkpoint) -> None:
    for kind in ("gpt", "bert"):
        trace = transformer.trace(tiny_checkpoint(kind), "The cat.")
        (row,) = strip_rows(trace, Focus(), choose=False, all_stacks=True)["rows"]
        assert row["title"] == "text"
