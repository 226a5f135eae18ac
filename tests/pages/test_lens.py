"""The Lens page equals the library, for every kind of model: the readout, and the logit as a sum."""

from __future__ import annotations

import numpy as np
import pytest

import transformer
from charts.toolkit.style import three_digits
from tests.pages.conftest import choose_text, is_fine, said
from transformer.attribution.direct_logit_attribution import attribute, strongest_sources
from transformer.interventions.direct_effects import remove_parts, strongest_removable
from transformer.interventions.experiment import experiment
from transformer.layers.residual_stream import label_in_sentence
from transformer.predictions.lens import logit_lens
from ui.shell.focus import FIRST_CHOSEN
from ui.words.texts import page_text
from views.lens import lens_sections as sections

TEXT = page_text("lens")
COLUMN = TEXT["column"]
SENTENCE = "The old man told us a story."
STACK = {"tiny-translator": "decoder", "tiny-gpt": "decoder", "tiny-bert": "encoder", "tiny-sentiment": "encoder"}
VIEW = {"lens_view": TEXT["view"]["author"]}


def plain(token):
    return token.removeprefix("·") or token


def table_with(app, column):
    return next(table.value for table in app.dataframe if COLUMN[column] in table.value)


@pytest.mark.parametrize("checkpoint", STACK)
def test_every_row_colour_and_place(open_app, tiny_checkpoint, run_snippet, checkpoint):
    app = open_app("lens", checkpoint=checkpoint, sentence=SENTENCE, stack=STACK[checkpoint], token="2")
    for rows in ("sublayers", "layers"):
        choose_text(app, "lens_rows", rows)
        for colour in ("rank", "divergence", "probability"):
            is_fine(choose_text(app, "lens_colour", colour).run())
    lens = logit_lens(transformer.trace(tiny_checkpoint(checkpoint), SENTENCE))
    column = lens.column(2 + lens.of_classes)
    assert f"**{plain(column.read)}**" in said(app) and f"**{plain(column.word)}**" in said(app)
    assert three_digits(column.probability) in said(app) and repr(column.word) in run_snippet(app)
    last = len(lens.read) - sections.MAX_COLUMNS
    first = min(max(0, 2 + lens.of_classes - sections.MAX_COLUMNS // 2), max(0, last))
    drawn = lens.part(first, first + sections.MAX_COLUMNS)
    late, never = int((drawn.decided == len(drawn.steps) - 1).sum()), int((drawn.decided < 0).sum())
    text = TEXT.instead("of_classes") if lens.of_classes else TEXT
    counted = text["top_never"] if lens.of_classes else text["top" if late else "top_none"]
    assert counted.format(count=never if lens.of_classes else late, total=len(drawn.read)) in said(app)
    assert text["legend_top"] in said(app)
    assert TEXT["pre" if lens.final_norm else "post"].format(norm="LayerNorm") in said(app)


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


# ---- the sum of parts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("checkpoint", STACK)
def test_the_sum_the_parts_and_the_words(open_app, tiny_checkpoint, run_snippet, checkpoint):
    app = open_app("lens", checkpoint=checkpoint, sentence=SENTENCE, stack=STACK[checkpoint], token="2", **VIEW)
    is_fine(app)
    trace = transformer.trace(tiny_checkpoint(checkpoint), SENTENCE)
    found = attribute(trace, None if checkpoint == "tiny-sentiment" else 2)
    assert f"**{three_digits(found.logit)}**" in said(app)
    assert f"**{label_in_sentence(found.strongest(1)[0].label)}**" in said(app)
    table, sources = table_with(app, "weight"), strongest_sources(trace, found)
    assert list(table[COLUMN["word"]]) == [source.display for source in sources]
    assert (TEXT["author_mean"].split(" {")[0] in said(app)) == (checkpoint == "tiny-sentiment")
    total, logit, deviation = map(float, run_snippet(app).splitlines()[:3])
    assert logit == pytest.approx(found.logit) and abs(total - logit) == pytest.approx(deviation)


def test_what_removing_a_part_does(open_app, tiny_checkpoint):
    app = open_app("lens", checkpoint="tiny-translator", sentence=SENTENCE, stack="decoder", token="2", **VIEW)
    app.segmented_control(key="lens_section").set_value("measured")
    is_fine(app.run())
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
