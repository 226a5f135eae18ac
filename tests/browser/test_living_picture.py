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
from tests.browser.conftest import pause, settle
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


def middle(page: Page, **target: object) -> list[float]:
    """Return the middle of what has these values among the targets of the picture."""
    places = geometry(page)["places"]
    x, y, width, height = next(one["rect"] for one in reversed(places) if target.items() <= one.items())
    return [x + min(width / 2, 6), y + height / 2]


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
        query, head = place["place"]["position"], place["head"]
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
        click(page, middle(page, what="lane", stack="decoder", position=2))
        assert geometry(page)["place"] == {"stack": "decoder", "position": 2}
        click(page, middle(page, what="layer", stack="decoder", layer=1))
        click(page, middle(page, what="band", stack="decoder", step=4))
        assert geometry(page)["unfolded"] == {"stack": "decoder", "layer": 1, "part": "attention", "kind": "cross"}
        row = list(tables(page)).index("q · k")
        click(page, middle(page, what="cell", row=row))
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
            assert tables(page)


def test_a_candidate_shows_its_softmax(show: Callable, traces: Callable) -> None:
    trace = traces("gpt")
    row = living_picture_numbers(trace).written[0]
    with show(trace) as page:
        click(page, middle(page, what="lane", position=row.position))
        click(page, middle(page, what="answer", k=0))
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
        assert list(tables(page)) == ["x", "softmax", "heads · W_O", "x + update"]


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


LOOKS = re.compile(r"Layer (\d+), (cross-attention|attention): (.+) looks most at (itself, then at )?(.+)\.")


# The numbers beside the sentence that are seen: those in the first line.
_SEEN = """line => [...line.children].filter((one) => one.offsetTop === line.children[0].offsetTop)
    .map((one) => one.textContent).join("")"""


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
            assert (unfolded["layer"], unfolded["kind"], found["head"]) == (1, "cross", 1)
        elif not unfolded:
            said = {"embedding": "The sentence is cut", "self_attention": "Layer 1, attention", "word": "To write "}
            said |= {"feed_forward": "Layer 0, feed-forward", "end": "To write "}
            assert caption(page).startswith(said[stop])


def test_the_controls_outlive_what_python_sends_anew(app: str, visit: Callable[..., Page]) -> None:
    """Dragging the slider, or pressing a button, may last while the page runs."""
    page = visit(f"{app}/?checkpoint=gpt")
    slider = page.get_by_role("slider", name="Position in the animation")
    slider.evaluate("node => { node.isTheSame = true; }")
    click(page, middle(page, what="lane", stack="decoder", position=2))
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
