"""The living picture in Chromium: its numbers equal the trace's; it plays, unfolds, is never empty."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect

import transformer
from charts.canvas.living_picture_canvas import living_picture_canvas
from tests.browser.conftest import eventually, pause, settle
from tests.browser.scenes import painted
from tests.browser.seats import Seats
from tests.conftest import ROOT
from tests.nights import by_day
from transformer.attribution.leave_one_out import leave_one_out
from transformer.layers.residual_stream import sublayers
from transformer.predictions.living_picture_numbers import living_picture_numbers, threads
from transformer.runs.traces import Trace
from views.view_models import predicting_token

pytestmark = pytest.mark.browser

SENTENCE = "The old man told us a story."
PAUSE = 120  # milliseconds between two gestures
KINDS = ("translator", "gpt", "bert", "sentiment", "hf-gpt2", "hf-bert")
TABLES = """() => [...document.querySelector("main").shadowRoot.querySelectorAll(".table table")].map((table) => ({
    caption: table.caption.textContent,
    columns: [...table.tHead.rows[0].cells].slice(1).map((cell) => cell.textContent),
    rows: [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent)),
}))"""
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def printed(value: float) -> str:
    """Format a number as the figure does: three significant digits."""
    value = float(value)
    if value == 0:
        return "0"
    if abs(value) >= 999.5:
        return f"{value:.0f}".replace("-", "−")
    if abs(value) >= 0.001:
        return f"{value:#.3g}".rstrip(".").replace("-", "−")
    digits, exponent = f"{value:.2e}".split("e")
    return f"{digits}·10{str(int(exponent)).translate(SUPERSCRIPTS)}".replace("-", "−")


@pytest.fixture(scope="module")
def traces(tiny_checkpoint: Callable, families_folder: Path) -> Callable[[str], Trace]:
    def trace(name: str) -> Trace:
        foreign = name.startswith("hf-")
        checkpoint = transformer.load(families_folder / name) if foreign else tiny_checkpoint(name)
        return transformer.trace(checkpoint, SENTENCE)

    return trace


@pytest.fixture
def show(seats: Seats, tmp_path: Path) -> Callable:
    @contextmanager
    def shown(trace: Trace, *, inside: bool = True, **more: object) -> Iterator[Page]:
        layers = [(stack, layer) for stack in trace.stacks for layer in range(trace.n_layers(stack))] if inside else ()
        file = tmp_path / "picture.html"
        living_picture_canvas(living_picture_numbers(trace, inside=layers), **more).save(file)
        with seats.taken() as seat:
            seat.page.goto(file.as_uri())
            seat.page.locator("canvas[data-geometry]").wait_for()
            yield seat.page

    return shown


def geometry(page: Page) -> dict:
    return painted(page.locator("canvas").first)[0]


def press(page: Page, key: str) -> None:
    page.locator("canvas").first.focus()
    page.keyboard.press(key)
    pause(page, PAUSE)


def click(page: Page, place: list[float]) -> None:
    _, box = painted(page.locator("canvas").first)
    page.mouse.move(box["x"] + place[0] - 3, box["y"] + place[1])
    pause(page, PAUSE)
    page.mouse.click(box["x"] + place[0], box["y"] + place[1])
    pause(page, PAUSE)


def tables(page: Page) -> dict[str, dict]:
    """Return tables by the beginning of their captions, as the button “Table” shows them."""
    page.get_by_role("button", name="Table").click()
    found = page.evaluate(TABLES)
    page.get_by_role("button", name="Table").click()
    names = [table["caption"] for table in found]
    short = [name if "looks most at" in name else name.split(". ")[0] for name in names]
    return dict(zip(short, found, strict=True))


def caption(page: Page) -> str:
    return page.locator(".sentence").inner_text()


@pytest.mark.parametrize("name", by_day(KINDS, ("translator", "hf-gpt2", "bert")))
def test_every_number_of_an_unfolded_attention_is_the_trace_s(show: Callable, traces: Callable, name: str) -> None:
    trace = traces(name)
    with show(trace) as page:
        press(page, "Enter")
        place = geometry(page)
        stack, layer, kind = (place["unfolded"][part] for part in ("stack", "layer", "kind"))
        query, head = place["place"]["position"], place["shownHead"]
        found = tables(page)
    prefix = f"{stack}.layers.{layer}.{kind}_attention"
    view = trace.attention(stack, layer, kind)
    count = len(found["softmax"]["columns"])
    allowed = view.allowed[query]
    weights = found["softmax"]["rows"][0][1:]
    assert [weights[key] for key in range(count) if allowed[key]] == [
        printed(view.weights[head, query, key]) for key in range(count) if allowed[key]
    ]
    assert [text == "masked" for text in weights] == [not allowed[key] for key in range(count)]
    rule = next(caption for caption in found if caption.startswith("÷ √") or caption == "score")
    assert [text for text in found[rule]["rows"][0][1:] if text != "masked"] == [
        printed(view.scores[head, query, key]) for key in range(count) if allowed[key]
    ]
    for label, part in (("keys K", "key"), ("values V", "value")):
        values = trace.values(f"{prefix}.{part}")[head]
        shown = [row[1:] for row in found[label]["rows"]]
        assert shown == [[printed(values[key, channel]) for key in range(count)] for channel in range(values.shape[1])]
    for label, part in (("query Q", "query"), ("sum", "context")):
        values = trace.values(f"{prefix}.{part}")[head, query]
        assert [row[1] for row in found[label]["rows"]] == [printed(value) for value in values]
    products = trace.values(f"{prefix}.key")[head, :count].astype(float) @ trace.values(f"{prefix}.query")[head, query]
    for text, value in zip(found["q · k"]["rows"][0][1:], products, strict=True):
        number = float(text.replace("−", "-")) if "10" not in text or "·" not in text else None
        assert number is None or number == pytest.approx(value, rel=6e-3, abs=1e-3)
    steps = {(step.layer, step.kind): step for step in sublayers(trace, stack)}
    after = steps[layer, f"{kind}_attention"].after
    top = next(caption for caption in found if "x + update" in caption)
    assert [row[1] for row in found[top]["rows"]] == [
        printed(value) for value in threads(trace.values(after)[query]).astype(np.float32)
    ]


@pytest.mark.parametrize("name", by_day(KINDS, ("gpt", "sentiment", "hf-bert")))
def test_what_stands_beside_the_picture_is_the_trace_s(show: Callable, traces: Callable, name: str) -> None:
    trace = traces(name)
    picture = living_picture_numbers(trace)
    with show(trace) as page:
        found = tables(page)
        place = geometry(page)["place"]
    heads = next(table for caption, table in found.items() if "looks most at" in caption)
    kind = "cross" if place["stack"] == "decoder" and len(trace.stacks) > 1 else "self"
    view = trace.attention(place["stack"], 0, kind)
    for head, row in enumerate(heads["rows"]):
        best = view.weights[head, place["position"]].argmax()
        assert row[1:] == [view.key.labels[best], printed(view.weights[head, place["position"], best])]
    written = [row for row in picture.written if picture.classes or row.position == place["position"]]
    if written:
        assert [row for row in found["Candidates"]["rows"]] == [
            [shown, printed(np.float32(chance))]
            for shown, chance in zip(written[0].names, written[0].probabilities, strict=True)
        ]


@pytest.mark.parametrize("name", by_day(["en-fr", "gpt-en", "bert-en", "sentiment"], ["gpt-en", "sentiment"]))
def test_a_picture_follows_the_second_row_of_the_output_or_the_word_that_decides(show: Callable, name: str) -> None:
    checkpoint = transformer.load(ROOT / "checkpoints" / name)
    for sentence in ("My grandmother bakes apple pie every Sunday.", "The children went to the"):
        trace = transformer.trace(checkpoint, sentence)
        left_out = leave_one_out(checkpoint, sentence) if checkpoint.config.n_classes else None
        row = left_out.words[left_out.decisive].start if left_out else predicting_token(trace)
        with show(trace, inside=False, begin={"layer": 1}, left_out=left_out) as page:
            assert geometry(page)["place"] == {"stack": trace.stacks[-1], "position": row}, sentence


def test_it_plays_pauses_and_goes_by_keys(show: Callable, traces: Callable) -> None:
    with show(traces("translator")) as page:
        last = geometry(page)["beats"] - 1
        assert geometry(page)["beat"] == last, "it opens with the whole run"
        page.get_by_role("button", name="Play").click()
        page.wait_for_function("() => document.querySelector('main').shadowRoot.querySelector('input').value > 0")
        assert "tokens" in caption(page) or "Layer 0" in caption(page)
        page.get_by_role("button", name="Pause").click()
        pause(page, PAUSE)
        stopped = geometry(page)["beat"]
        page.wait_for_timeout(900)
        assert geometry(page)["beat"] == stopped > 0
        press(page, "Home")
        assert geometry(page)["beat"] == 0 and "7" not in caption(page)[:3]
        press(page, "ArrowRight")
        assert geometry(page)["beat"] == 1 and caption(page).startswith("Layer 0, attention")
        expect(page.locator(".live")).to_contain_text("Layer 0, attention")
        press(page, "ArrowLeft")
        press(page, "End")
        assert geometry(page)["beat"] == last


def test_a_click_follows_opens_unfolds_and_escape_goes_back(show: Callable, traces: Callable) -> None:
    with show(traces("translator")) as page:
        places = geometry(page)["places"]["decoder"]
        click(page, places["lanes"][2])
        assert geometry(page)["place"] == {"stack": "decoder", "position": 2}
        click(page, places["layers"][1])
        assert geometry(page)["open"]["decoder"] == 1
        bands = geometry(page)["places"]["decoder"]["bands"]
        click(page, bands[4])
        assert geometry(page)["unfolded"] == {"stack": "decoder", "layer": 1, "part": "attention", "kind": "cross"}
        row = next(row for row in geometry(page)["rows"] if row["name"] == "product")
        x, y, width, height = row["box"]
        click(page, [x + width / 2, y + height / 2])
        panel = page.locator(".arithmetic")
        expect(panel).to_contain_text("q · k")
        lines = [line for line in panel.locator("tbody").inner_text().split("\n") if line]
        rows = [[cell.replace("−", "-") for cell in line.split("\t")] for line in lines]
        for _channel, q, k, product in rows:
            if "10" not in q + k + product:
                assert float(q) * float(k) == pytest.approx(float(product), rel=0.02, abs=2e-3)
        press(page, "Escape")
        expect(panel).to_have_count(0)
        press(page, "Escape")
        assert geometry(page)["unfolded"] is None
        press(page, "Escape")
        assert geometry(page)["place"]["position"] != 2 or geometry(page)["head"] is None
        for part in ("embedding", "attention", "cross-attention", "feed-forward"):
            if geometry(page)["unfolded"] is None:
                press(page, "Enter")
            page.get_by_role("button", name=part, exact=True).click()
            assert geometry(page)["rows"]


def test_a_candidate_shows_its_softmax(show: Callable, traces: Callable) -> None:
    trace = traces("gpt")
    row = living_picture_numbers(trace).written[0]
    with show(trace) as page:
        lanes = geometry(page)["places"]["decoder"]["lanes"]
        click(page, lanes[row.position])
        click(page, geometry(page)["places"]["answer"][0])
        panel = page.locator(".arithmetic")
        cells = [line.split("\t") for line in panel.locator("tbody").inner_text().split("\n") if line]
        assert [(cell[1], cell[3]) for cell in cells] == [
            (printed(np.float32(logit)), printed(np.float32(chance)))
            for logit, chance in zip(row.logits, row.probabilities, strict=True)
        ]
        press(page, "Escape")
        expect(panel).to_have_count(0)


def test_who_wants_no_motion_gets_none(show: Callable, traces: Callable) -> None:
    with show(traces("gpt")) as page:
        page.emulate_media(reduced_motion="reduce")
        press(page, "Home")
        press(page, "ArrowRight")
        before = page.locator("canvas").first.screenshot()
        page.wait_for_timeout(300)
        assert page.locator("canvas").first.screenshot() == before


def test_a_layer_that_was_not_sent_unfolds_with_what_is_there(show: Callable, traces: Callable) -> None:
    with show(traces("gpt"), inside=False) as page:
        press(page, "Enter")
        assert [row["name"] for row in geometry(page)["rows"]] == ["x", "weight", "update", "after"]


SAYS = {"everything cut": "all edges of every head are cut"}


def test_a_checkpoint_with_nan_gets_a_sentence_in_place_of_a_picture(tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint("gpt")
    checkpoint = replace(checkpoint, model=deepcopy(checkpoint.model))
    with torch.no_grad():
        checkpoint.model.decoder.layers[1].feed_forward.input_projection.weight[0] = float("nan")
    with pytest.raises(transformer.NotFiniteError, match=r"decoder\.layers\.1\.feed_forward"):
        living_picture_numbers(transformer.trace(checkpoint, SENTENCE))


@pytest.mark.parametrize("case", ["one token", "long", "everything cut"])
def test_bad_input_gets_a_picture_with_a_sentence(
    seats: Seats, tmp_path: Path, tiny_checkpoint: Callable, case: str
) -> None:
    cuts: list[dict] = []
    checkpoint = tiny_checkpoint("translator" if case == "everything cut" else "gpt")
    if case == "everything cut":
        heads = [(layer, head) for layer in range(2) for head in range(checkpoint.config.n_heads)]
        cuts = [{"stack": "decoder", "kind": "cross", "layer": layer, "head": head} for layer, head in heads]
        edits = [transformer.ablate_head("decoder", layer=layer, kind="cross", head=head) for layer, head in heads]
        trace = transformer.trace(checkpoint, SENTENCE, edits=edits)
    else:
        sentence = {"one token": "a", "long": "the old man " * 18}.get(case, SENTENCE)
        trace = transformer.trace(checkpoint, sentence)
    picture = living_picture_numbers(trace)
    file = tmp_path / "picture.html"
    living_picture_canvas(picture).with_metadata(cuts=cuts).save(file)
    problems = []
    with seats.taken() as seat:
        page = seat.page
        page.goto(file.as_uri())
        page.locator("canvas[data-geometry]").wait_for()
        page.on("pageerror", lambda error: problems.append(str(error)))
        for key in ("Home", "ArrowRight", "ArrowRight", "Enter", "Escape", "End", "Enter"):
            press(page, key)
        pause(page, 600)
        press(page, "Escape")
        assert SAYS.get(case, "") in caption(page) and caption(page).strip() and not problems


def test_a_browser_without_canvas_shows_the_run_as_text(seats: Seats, traces: Callable, tmp_path: Path) -> None:
    file = tmp_path / "picture.html"
    living_picture_canvas(living_picture_numbers(traces("gpt"))).save(file)
    with seats.taken() as seat:
        # The tab is returned with its script, which affects only this page.
        script = "if (location.hash === '#no-canvas') HTMLCanvasElement.prototype.getContext = () => null"
        seat.page.add_init_script(script)
        seat.page.goto(f"{file.as_uri()}#no-canvas")
        expect(seat.page.locator("main")).to_contain_text("Layer 0, attention")


def test_unfold_is_pressed_while_it_plays_fast(show: Callable, traces: Callable) -> None:
    """The finger stays down longer than a beat lasts."""
    with show(traces("translator")) as page:
        speed = page.get_by_role("button", name="Speed")
        speed.click()
        speed.click()
        expect(speed).to_have_text("4×")
        page.get_by_role("button", name="Play").click()
        box = page.get_by_role("button", name="Unfold").bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.down()
        began = geometry(page)["beat"]
        page.wait_for_function(
            f"() => document.querySelector('main').shadowRoot.querySelector('input').value > {began}"
        )
        page.mouse.up()
        expect(page.get_by_role("button", name="‹ Back")).to_be_visible()


def test_who_unfolds_with_the_keyboard_keeps_the_focus(show: Callable, traces: Callable) -> None:
    focused = "() => document.querySelector('main').shadowRoot.activeElement?.textContent"
    with show(traces("translator")) as page:
        page.get_by_role("button", name="Unfold").focus()
        page.keyboard.press("Enter")
        assert page.evaluate(focused) == "‹ Back"
        page.get_by_role("button", name="feed-forward", exact=True).focus()
        page.keyboard.press("Enter")
        assert page.evaluate(focused) == "feed-forward"
        page.get_by_role("button", name="‹ Back").focus()
        page.keyboard.press("Enter")
        assert page.evaluate(focused) == "Unfold"


@pytest.mark.parametrize("name", ["translator", "gpt"])
def test_in_the_middle_of_the_run_the_caption_is_of_the_token_that_is_clicked(
    show: Callable, traces: Callable, name: str
) -> None:
    trace = traces(name)
    picture = living_picture_numbers(trace)
    with show(trace) as page:
        press(page, "End")
        press(page, "ArrowLeft")
        assert geometry(page)["beat"] == geometry(page)["beats"] - 2
        for row in picture.written[:2]:
            click(page, geometry(page)["places"]["decoder"]["lanes"][row.position])
            assert geometry(page)["place"]["position"] == row.position
            written = row.names[row.chosen]
            assert caption(page).startswith(f"To write {written.removeprefix('·') or written}, the model looks at ")
            shown = [line[0] for line in tables(page)["Candidates"]["rows"]]
            assert shown == list(row.names)


WRITTEN = """() => {
    const pens = [CanvasRenderingContext2D, globalThis.OffscreenCanvasRenderingContext2D].filter(Boolean);
    window.said = [];
    for (const { prototype } of pens) {
        const original = prototype.fillText;
        prototype.fillText = function (text, ...more) { said.push(text); return original.call(this, text, ...more); };
    }
}"""


@pytest.mark.parametrize(
    ("width", "tokens"),
    [
        *((1280, 4), (1280, 24), (390, 16)),
        *(pytest.param(1280, tokens, marks=pytest.mark.nightly) for tokens in (8, 12, 16)),
    ],
)
def test_every_word_is_whole_however_long_the_sentence_is(show: Callable, width: int, tokens: int) -> None:
    """Labels are horizontal, smaller, slanted or vertical, but never cut off, on any screen."""
    checkpoint = transformer.load("checkpoints/en-fr")
    words = ("My grandmother bakes apple pie every Sunday and we eat it together in the garden " * 2).split()
    trace = None
    for count in range(1, len(words)):
        text = " ".join(words[:count])
        if len(checkpoint.tokenizer.encode(text)) > tokens:
            break
        trace = transformer.trace(checkpoint, text)
    with show(trace, inside=False) as page:
        page.set_viewport_size({"width": width, "height": 844})
        pause(page, 4 * PAUSE)
        page.evaluate(WRITTEN)
        press(page, "ArrowLeft")
        press(page, "ArrowRight")
        said = set(page.evaluate("said"))
        for stack in trace.stacks:
            for token in trace.tokens(stack).displays:
                assert {token, token.removeprefix("·")} & said, (token, said)


def test_names_are_slanted_only_where_three_rows_of_them_do_not_fit(show: Callable) -> None:
    checkpoint = transformer.load("checkpoints/en-fr")
    sentences = {
        "The cat sat on the mat.": (1, 0),
        "My grandmother bakes apple pie every Sunday.": (2, 0),
        "My grandmother bakes apple pie every Sunday and we eat it together in the garden.": (3, 0),
        "My grandmother bakes apple pie every Sunday and we eat it in the garden of our old house near the river.": (
            1,
            1,
        ),
    }
    for sentence, (rows, slanted) in sentences.items():
        with show(transformer.trace(checkpoint, sentence), inside=False) as page:
            page.set_viewport_size({"width": 964, "height": 720})  # beside the sidebar of a projector of 1280 pixels
            page.wait_for_function(
                "() => document.querySelector('main').shadowRoot.querySelector('canvas').clientWidth < 964"
            )
            names = geometry(page)["names"]
            assert (names["rows"], names["angle"] > 0) == (rows, bool(slanted)), sentence
            page.set_viewport_size({"width": 1440, "height": 900})


def test_on_a_phone_no_name_is_upright(show: Callable) -> None:
    """Level names of narrow columns take turns in several rows."""
    checkpoint = transformer.load("checkpoints/en-fr")
    for sentence in (
        "My grandmother bakes apple pie every Sunday.",
        "The old man who lived by the sea told us a story.",
    ):
        with show(transformer.trace(checkpoint, sentence), inside=False) as page:
            page.set_viewport_size({"width": 390, "height": 844})
            assert eventually(page, lambda page=page: geometry(page)["names"]["rows"] > 3, True)
            assert geometry(page)["names"]["angle"] == 0
            page.set_viewport_size({"width": 1440, "height": 900})


def test_what_is_predicted_is_at_the_head_of_the_column_that_predicts_it(show: Callable) -> None:
    """A class that is read from the mean of all columns has the head of them all."""
    cases = {
        "en-fr": (SENTENCE, "reads {token}, predicts"),
        "gpt-en": (SENTENCE, "reads {token}, predicts"),
        "bert-en": ("They washed ___ hands.", "fills the blank with"),
        "sentiment": (SENTENCE, "read from the mean of all columns"),
        "vit-digits": (
            "018aea000ca66g2003007e1000009b0000002g10000008c000402b9000cgec40",
            "read from the column of [CLS]",
        ),
    }
    for name, (sentence, small) in cases.items():
        checkpoint = transformer.load(f"checkpoints/{name}")
        trace = transformer.trace(checkpoint, sentence)
        picture = living_picture_numbers(trace)
        stack = trace.stacks[-1]
        with show(trace, inside=False) as page:
            found = geometry(page)
            output, lanes = found["output"], found["places"][stack]["lanes"]
            if picture.pooling == "mean" and picture.classes:
                assert output["reads"] is None
                assert output["x"] == pytest.approx((lanes[0][0] + lanes[-1][0]) / 2, abs=20)
            else:
                assert output["x"] == pytest.approx(lanes[output["reads"]][0], abs=1)
                assert picture.classes or output["reads"] == found["place"]["position"]
            row = next(row for row in picture.written if picture.classes or row.position == output["reads"])
            said = row.names[row.chosen if picture.asked or picture.classes else 0]
            assert output["name"] == (said.removeprefix("·") or said)
            assert output["name"] in caption(page)
            page.evaluate(WRITTEN)
            press(page, "ArrowLeft")
            press(page, "ArrowRight")
            token = trace.tokens(stack).labels[row.position].removeprefix("·")
            assert small.format(token=token) in page.evaluate("said")


def test_candidates_of_a_translation_are_above_the_encoder_where_they_fit(show: Callable) -> None:
    trace = transformer.trace(transformer.load("checkpoints/en-fr"), SENTENCE)
    with show(trace, inside=False) as page:
        for width, fit in ((1000, True), (390, False)):
            page.set_viewport_size({"width": width, "height": 720})

            def is_left(page: Page = page) -> bool:
                places = geometry(page)["places"]
                return all(x < places["decoder"]["lanes"][0][0] for x, _ in places["answer"])

            assert eventually(page, is_left, fit)
            places = geometry(page)["places"]
            assert all(y < places["encoder"]["layers"][-1][1] for _, y in places["answer"])


def test_a_word_of_the_sentence_that_is_clicked_opens_its_own_stack(show: Callable, traces: Callable) -> None:
    trace = traces("translator")
    with show(trace) as page:
        click(page, geometry(page)["places"]["encoder"]["lanes"][2])
        assert geometry(page)["place"] == {"stack": "encoder", "position": 2}
        assert caption(page).startswith(f"Layer 0, attention: {trace.tokens('encoder').labels[2]} looks most at ")
        tops = [y for _, y in geometry(page)["places"]["encoder"]["bands"]]
        assert tops[0] - tops[1] > 60, "its layer lies open: the line that the caption speaks of is drawn"


def test_the_picture_opens_on_a_word_and_shows_heads_when_asked(show: Callable, traces: Callable) -> None:
    trace = traces("translator")
    with show(trace) as page:
        place = geometry(page)["place"]
        row = next(row for row in living_picture_numbers(trace).written if row.position == place["position"])
        weights = trace.attention("decoder", 0, "cross").weights[:, row.position].mean(0)
        best = trace.tokens("encoder").labels[weights.argmax()]
        assert f"the model looks at {best.removeprefix('·') or best}." in caption(page)
        assert f"mean of {len(trace.attention('decoder', 0, 'cross').weights)} heads" in caption(page)
        button = page.get_by_role("button", name="Heads")
        expect(button).to_have_attribute("aria-pressed", "false")
        button.click()
        expect(button).to_have_attribute("aria-pressed", "true")


LOOKS = re.compile(r"Layer (\d+), (cross-attention|attention): (.+) looks most at (itself, then at )?(.+)\.")


@pytest.mark.parametrize("name", by_day(["en-fr", "gpt-en", "bert-en", "sentiment"], ("en-fr", "sentiment")))
@pytest.mark.parametrize("sentence", ["My grandmother bakes apple pie every Sunday.", "a funny but dull film"])
def test_what_a_token_looks_at_most_is_what_its_row_says(show: Callable, name: str, sentence: str) -> None:
    """The largest weight of the row decides, that on the token itself included."""
    trace = transformer.trace(transformer.load(f"checkpoints/{name}"), sentence)
    with show(trace, inside=False) as page:
        captions = [row[1] for row in tables(page)["The path of a sentence through the model"]["rows"]]
    stack, checked = trace.stacks[0], 0
    for said in captions:
        stack = trace.stacks[-1] if said.startswith("The encoder has read") else stack
        found = LOOKS.match(said)
        if not found:
            continue
        layer, kind, token, itself, key = found.groups()
        view = trace.attention(stack, int(layer), "cross" if kind.startswith("cross") else "self")
        query = trace.tokens(stack).labels.index(token)
        weights = np.where(view.allowed[query], view.weights[:, query].mean(0), 0.0)
        best = [view.key.labels[at] for at in weights.argsort()[::-1][:2]]
        assert best == [token, key] if itself else best[0] == key, said
        checked += 1
    assert checked >= 2


def test_a_class_is_followed_to_the_word_that_it_depends_on(show: Callable) -> None:
    checkpoint = transformer.load("checkpoints/sentiment")
    for sentence in ("a funny but dull film", "My grandmother bakes apple pie every Sunday."):
        found = leave_one_out(checkpoint, sentence)
        names, word = found.class_names, found.words[found.decisive]
        other = names[found.without[found.decisive].argmax()]
        with show(transformer.trace(checkpoint, sentence), inside=False, left_out=found) as page:
            assert geometry(page)["place"]["position"] == word.start
            name = names[found.predicted]
            assert caption(page).startswith(
                f"The model predicts {name}; without {word.text}, {other}."
                if other != name
                else f"The model predicts {name}; that depends most on {word.text}."
            )
            without = printed(np.float32(found.without[found.decisive, found.predicted]))
            assert f"without it {without}" in caption(page)
            for width in (940, 800):  # a second line would move the picture down
                page.set_viewport_size({"width": width, "height": 720})
                pause(page, PAUSE)
                buttons = page.locator(".sentence > button").evaluate_all("all => all.map((one) => one.offsetTop)")
                assert len(buttons) == 2 and len(set(buttons)) == 1
            page.set_viewport_size({"width": 1440, "height": 900})


def test_the_weight_beside_an_answer_names_the_token_that_it_is_on(show: Callable) -> None:
    trace = transformer.trace(transformer.load("checkpoints/bert-en"), "They washed ___ hands.")
    with show(trace, inside=False) as page:
        layer, weight, key = re.search(r"layer (\d+), mean of 8 heads: weight (\S+) on (\S+)", caption(page)).groups()
        view = trace.attention("encoder", int(layer))
        blank = trace.source.displays.index("<mask>")
        assert printed(np.float32(view.weights[:, blank].mean(0)[view.key.labels.index(key)])) == weight


# The numbers beside the sentence that are seen: those in the first line.
_SEEN = """line => [...line.children].filter((one) => one.offsetTop === line.children[0].offsetTop)
    .map((one) => one.textContent).join("")"""


def test_numbers_that_are_left_out_leave_no_separator(show: Callable) -> None:
    trace = transformer.trace(transformer.load("checkpoints/bert-en"), "They washed ___ hands.")
    with show(trace, inside=False) as page:
        seen = set()
        for width in range(700, 1400, 50):
            page.set_viewport_size({"width": width, "height": 800})
            pause(page, PAUSE)
            seen.add(page.locator(".living-picture .numbers").evaluate(_SEEN))
        whole, short = sorted(seen, key=len, reverse=True)
        assert whole.startswith(f"{short} · probability ") and not short.rstrip().endswith("·")


STOPS = {
    "embedding": {"stack": "encoder", "token": 2},
    "self_attention": {"stack": "encoder", "layer": 1, "token": 2},
    "feed_forward": {"stack": "decoder", "layer": 0, "token": 0},
    "word": {"stack": "decoder", "kind": "cross", "layer": 1, "token": 1},
    "unfold cross_attention": {"stack": "decoder", "kind": "cross", "layer": 1, "head": 1, "token": 1},
    "unfold embedding": {"stack": "encoder", "token": 1},
    "end": {"stack": "decoder", "kind": "cross", "layer": 1, "token": 1},
}


@pytest.mark.parametrize("stop", STOPS)
def test_a_lesson_finds_the_picture_at_its_stop(show: Callable, traces: Callable, stop: str) -> None:
    place = {"layer": 0, "head": 0, **STOPS[stop]}
    with show(traces("translator"), begin={**place, "stop": stop}) as page:
        found = geometry(page)
        assert found["place"] == {"stack": place["stack"], "position": place["token"]}
        unfolded = found["unfolded"]
        assert bool(unfolded) == stop.startswith("unfold")
        assert (found["beat"] == found["beats"] - 1) == (stop == "end")
        if "attention" in stop and unfolded:
            assert (unfolded["layer"], unfolded["kind"], found["shownHead"]) == (1, "cross", 1)
        elif not unfolded:
            said = {"embedding": "The sentence is cut", "self_attention": "Layer 1, attention", "word": "To write "}
            said |= {"feed_forward": "Layer 0, feed-forward", "end": "To write "}
            assert caption(page).startswith(said[stop])


@pytest.fixture(scope="module")
def translated() -> Trace:
    return transformer.trace(transformer.load("checkpoints/en-fr"), "The cat sat on the mat.")


def test_every_cell_of_an_unfolded_row_has_its_number(show: Callable, translated: Trace) -> None:
    """The full stop has the narrowest column; weights have equal decimals, so that they visibly add up."""
    begin = {"stack": "decoder", "kind": "cross", "layer": 2, "head": 0, "token": 1}
    with show(translated, begin={**begin, "stop": "unfold cross_attention"}) as page:
        page.set_viewport_size({"width": 960, "height": 720})
        page.locator("canvas").evaluate("() => new Promise(requestAnimationFrame)")
        rows = {row["name"]: row["written"] for row in geometry(page)["rows"]}
    assert [len(rows[name]) for name in ("product", "score", "weight")] == [len(translated.source)] * 3
    assert {len(text) for text in rows["weight"]} == {len("0.000")}
    weights = translated.attention("decoder", 2, "cross").weights[0, 1]
    assert rows["weight"] == [f"{weight:.3f}" for weight in weights]


def test_where_no_position_is_added_the_input_is_one_row(show: Callable, translated: Trace, traces: Callable) -> None:
    begin = {"stack": "encoder", "token": 1, "layer": 0, "head": 0, "stop": "unfold embedding"}
    with show(translated, begin=begin) as page:
        assert [row["label"] for row in geometry(page)["rows"]] == ["x = row of E"]
    with show(traces("translator"), begin=begin) as page:
        assert [row["label"] for row in geometry(page)["rows"]] == ["row of E", "+ position", "x"]


def test_on_a_phone_the_rows_of_an_unfolded_layer_have_their_names(show: Callable, translated: Trace) -> None:
    begin = {"stack": "encoder", "token": 2, "layer": 0, "head": 0, "stop": "unfold feed_forward"}
    with show(translated, begin=begin) as page:
        page.set_viewport_size({"width": 390, "height": 844})
        assert eventually(page, lambda: page.locator("canvas").first.bounding_box()["width"] < 390, True)
        assert eventually(page, lambda: {row["shown"] == row["label"] for row in geometry(page)["rows"]}, {True})


def test_all_heads_are_listed_where_nothing_is_below_them(show: Callable, translated: Trace) -> None:
    begin = {"stack": "encoder", "layer": 0, "head": 0, "token": 3, "stop": "self_attention"}
    with show(translated, begin=begin) as page:
        page.set_viewport_size({"width": 960, "height": 720})
        page.get_by_role("button", name="Heads").click()
        assert geometry(page)["heads"] == list(range(translated.checkpoint.config.n_heads))


def test_the_controls_outlive_what_python_sends_anew(app: str, visit: Callable[..., Page]) -> None:
    """Dragging the slider, or pressing a button, may last while the page runs."""
    page = visit(f"{app}/?checkpoint=gpt")
    slider = page.get_by_role("slider", name="Position in the animation")
    slider.evaluate("node => { node.isTheSame = true; }")
    click(page, geometry(page)["places"]["decoder"]["lanes"][2])
    pause(page, 1000)  # when the hand rests, Python receives the position
    settle(page)
    assert slider.evaluate("node => node.isTheSame")
    page.get_by_role("button", name="Unfold").click()
    back = page.get_by_role("button", name="‹ Back")
    back.evaluate("node => { node.isTheSame = true; }")
    page.wait_for_timeout(1500)
    settle(page)
    assert back.evaluate("node => node.isTheSame")


def test_the_rest_of_the_page_comes_when_the_picture_is_painted(app: str, visit: Callable[..., Page]) -> None:
    """Sent in one piece, the layers would delay the figure."""
    page = visit(f"{app}/?checkpoint=gpt")
    expect(page.get_by_test_id("stMetric").last).to_be_visible()
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
