"""The Lens page: where it opens, the part of a long text, and what removing a part does.

What its readout and its sum say is in ``test_drawn.py``.
"""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from tests.pages.conftest import choose_text, is_fine, said
from transformer.attribution.direct_logit_attribution import attribute
from transformer.interventions.direct_effects import remove_parts, strongest_removable
from transformer.interventions.experiment import experiment
from transformer.layers.residual_stream import label_in_sentence
from ui.shell.focus import FIRST_CHOSEN
from ui.words.texts import page_text
from views.lens import lens_sections as sections

TEXT = page_text("lens")
COLUMN = TEXT["column"]
SENTENCE = "The old man told us a story."


def table_with(app, column):
    return next(table.value for table in app.dataframe if COLUMN[column] in table.value)


@pytest.mark.parametrize(
    ("checkpoint", "sentence", "key", "read"),
    [
        ("tiny-sentiment", SENTENCE, "place_whole", ""),
        ("tiny-bert", "The old ___ told us a story.", "place_masked", "<mask>"),
    ],
)
def test_the_page_opens_at_the_output(open_app, checkpoint, sentence, key, read):
    begin = TEXT[key].split("{word}")[0].replace("{read}", read)
    assert begin in said(open_app("lens", checkpoint=checkpoint, sentence=sentence))


def test_the_first_token_of_a_text_can_be_followed(open_app):
    """The first token is the default focus, so the page chooses the end of the text by itself."""
    app = open_app("lens", checkpoint="tiny-gpt", sentence=SENTENCE)
    assert "**<s>**" not in said(app)
    is_fine(choose_text(app, FIRST_CHOSEN, "1").run())  # the message of a click on the strip
    assert "**<s>**" in said(app) and "1" in app.query_params["lens_start"]
    for address in ({"lens_start": "1"}, {"token": "0"}):  # a link that was copied, one that somebody typed
        assert "**<s>**" in said(open_app("lens", checkpoint="tiny-gpt", sentence=SENTENCE, **address))
    app.text_input(key="sentence").set_value("The dog sleeps.").run()
    assert "**<s>**" not in said(app)


def test_an_old_link_to_the_jacobian_lens_shows_the_logit_lens_and_says_so(open_app):
    app = open_app("lens", checkpoint="tiny-gpt", sentence=SENTENCE, lens_view="jacobian")
    assert any("jacobian" in caption.value for caption in app.main.caption) and TEXT["caution"] in said(app)


def test_what_removing_a_part_does(open_app, tiny_checkpoint):
    address = {"stack": "decoder", "token": "2", "lens_view": TEXT["view"]["author"], "lens_section": "measured"}
    app = open_app("lens", checkpoint="tiny-translator", sentence=SENTENCE, **address)
    is_fine(app)
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE)
    found, second = attribute(trace, 2), app.text_input(key="lens_second").value
    pair = experiment(trace, sentence=second, keep_answer=True)
    effects = remove_parts(trace, found, strongest_removable(found, sections.MOST_REMOVED), second=pair)
    table = table_with(app, "zero")
    assert list(table[COLUMN["part"]]) == [part.label for part in effects.parts]
    for column in ("added", "zero", "mean", "patched"):
        np.testing.assert_allclose(table[COLUMN[column]], getattr(effects, column))
    assert f"ρ = {effects.agreement:.2f}".replace("-", "−") in said(app)
    gap = np.abs(effects.added - effects.zero)
    assert f"**{label_in_sentence(effects.parts[int(gap.argmax())].label)}**" in said(app)
    app.text_input(key="lens_second").set_value(f"{second} {second}").run()
    assert "tokens" in app.warning[0].value  # the other measures are still there
    assert COLUMN["patched"] not in table_with(app, "zero")
