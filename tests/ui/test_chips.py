from __future__ import annotations

import json

import pytest

from ui.show.chips import Chip, ChipRow, chips_data, read_choice


def test_the_legend_explains_only_what_occurs():
    row = ChipRow("reads", (Chip("·The", "7", "word"), Chip("s", "9", "part")), chosen=1)
    data = chips_data([row], legend={"word": "a word", "part": "goes on", "byte": "a byte"}, choose=True)
    assert [entry["tone"] for entry in data["legend"]] == ["word", "part"]
    assert data["rows"][0]["chosen"] == 1 and data["rows"][0]["clickable"]


def test_text_travels_as_it_is():
    """Cards use textContent, so markup is harmless and must not be escaped."""
    data = chips_data([ChipRow("", (Chip("<b>&*`"),))], legend=None, choose=False)
    assert json.loads(json.dumps(data))["rows"][0]["tokens"][0]["text"] == "<b>&*`"


@pytest.mark.parametrize(("values", "message"), [({"tone": "red"}, "tone is 'red'"), ({"share": 1.5}, "share is 1.5")])
def test_what_cannot_be_drawn_is_refused(values, message):
    with pytest.raises(ValueError, match=message):
        Chip("a", **values)


NO_CHOICES = [None, 7, [], {}, {"row": 2, "card": 0}, {"row": 0, "card": 3}, {"row": -1, "card": 0}, {"row": 0}]
NO_CHOICES += [{"row": True, "card": 0}, {"row": 0.5, "card": 0}, {"row": "0", "card": 0}]


@pytest.mark.parametrize("value", NO_CHOICES, ids=repr)
def test_a_click_on_no_card_is_none(value):
    assert read_choice(value, (3, 1)) is None
    assert read_choice({"row": 1, "card": 0}, (3, 1)) == (1, 0)
