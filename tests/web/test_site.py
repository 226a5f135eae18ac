"""The site in a real Chromium shows what Python computes: every packed figure, number by number."""

from __future__ import annotations

import base64
import functools
import http.server
import json
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

import transformer
from charts.canvas.attention_maps import attention_map, predicted_rows
from charts.canvas.attention_overview import AnyHead, attention_overview
from charts.canvas.figure import CanvasFigure
from charts.canvas.living_picture_canvas import living_picture_canvas
from charts.canvas.written_steps import StepBars, written_steps
from charts.toolkit.payload_bytes import unpack
from charts.toolkit.style import three_digits
from tests.browser.conftest import eventually
from tests.browser.scenes import painted
from tests.web.bidi import executable, firefox
from transformer.files.checkpoints import Checkpoint
from transformer.interventions.head_importance import head_effect
from transformer.predictions.living_picture_numbers import living_picture_numbers
from transformer.runs.edit_specs import edits_from
from transformer.runs.masked_word import NONE, masked_word, words_in
from transformer.runs.traces import Trace
from ui.shell.guidance import lessons as lesson_files
from ui.shell.selectors import text_for
from ui.show.drawings import add_captions
from ui.words.texts import page_text, plain_word, use_language
from views.attention.facts import read_aloud
from web.lessons import lessons_for
from web.site import write_single_file, write_site

CHECKPOINTS = Path(__file__).resolve().parents[2] / "checkpoints"
ANSWERED = re.compile("^→ ")
TOLERANCE = 2e-5
# Of the largest number of an array: 25 units in the last place of float32. Scores reach 26, and torch’s own are 1.1e-5
# from those in float64 there: two programs that are as exact as float32 may differ by more than 2e-5.
ROUNDING = 3e-6
PLACE = {"stack": "encoder", "kind": "self", "layer": 0, "head": 0, "token": 0}
# The request of the page to its worker, without the page's own handling of the answer.
ASK = """({ request, view, language }) => new Promise((resolve) => {
  const { worker } = glassformerSite;
  const id = 1_000_000 + Math.random();
  const hear = ({ data }) => {
    if (data.done !== id && data.problem !== id) return;
    worker.removeEventListener("message", hear);
    const base64 = (bytes) => {
      let text = "";
      for (const byte of bytes) text += String.fromCharCode(byte);
      return btoa(text);
    };
    resolve({ ...data, figure: base64(data.figure ?? []) });
  };
  worker.addEventListener("message", hear);
  worker.postMessage({ run: { id, request, view, language } });
})"""

SMALL = """[...document.querySelectorAll("#app *")]
  .filter((one) => one.textContent.trim() && !one.closest("[hidden]"))
  .filter((one) => parseFloat(getComputedStyle(one).fontSize) < 14)
  .map((one) => one.outerHTML.slice(0, 80))"""


class Site:
    """A site on a loopback port, and a browser that records errors and requests to other hosts."""

    def __init__(self, address: str, page: Page) -> None:
        self.address, self.page = address, page
        page.set_default_timeout(60_000)  # a busy machine may be slow
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        page.on("request", lambda sent: self.errors.append(sent.url) if not self._own(sent.url) else None)

    def _own(self, url: str) -> bool:
        return url.startswith((self.address, "data:", "blob:"))

    def open(self, query: str = "") -> None:
        self.page.goto(f"{self.address}/{query}")
        self.page.wait_for_selector(".figure[data-shown]", timeout=120_000)
        assert self.errors == []

    def ask(self, sentence: str, page: str, *, target: str = "", language: str = "en", **view: Any) -> dict[str, Any]:
        """Return the worker's answer with a page's packed ``figure``; ``view`` may have ``removed`` heads."""
        request = {"sentence": sentence, "target": target, "forced": [], "removed": view.pop("removed", [])}
        view = {"place": PLACE, **view, "page": page}
        said = self.page.evaluate(ASK, {"request": request, "view": view, "language": language})
        assert "problem" not in said or "said" in said, said
        return said | {"figure": base64.b64decode(said["figure"])}


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serve the files of a folder without logging requests."""

    def log_message(self, *_said: object) -> None:
        pass


@pytest.fixture(scope="module")
def serve() -> Iterator[Any]:
    """``serve(folder)`` returns the address of a plain web server for it."""
    servers = []

    def begin(folder: Path) -> str:
        handler = functools.partial(Quiet, directory=str(folder))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}"

    yield begin
    for server in servers:
        server.shutdown()


@pytest.fixture(scope="module")
def browser(chromium: Browser) -> Browser:
    return chromium


LESSON = """
title = "A short lesson"
aim = "See the bar."
minutes = 1
[focus]
checkpoint = "tiny-bert"
sentence = "The ___ sat."
[[step]]
page = "overview"
title = "Look"
do = "Follow `The`."
notice = "Columns are **tokens**."
question = "What is a column?"
answer = "a token"
explanation = "Each has one."
hint = "Count them."
wrong = [["a letter", "There are more letters."], ["a layer", "Layers are rows."]]
open = "the answer is found in the picture"
options = { "living picture stop" = "self_attention" }
[[step]]
page = "masks"
title = "Hide a word"
do = "Compare the outputs."
notice = "The word is hatched."
question = "What is hidden?"
answer = "the word"
explanation = "No token attends to it."
wrong = [["the blank", ""]]
cover = "page"
mask = ["word 0"]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory, checkpoints_folder) -> Path:
    """A site with a tiny translator, a model that fills blanks, the digits model, and a lesson."""
    out, texts = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("lessons")
    models = [checkpoints_folder / "tiny-translator", checkpoints_folder / "tiny-bert", CHECKPOINTS / "vit-digits"]
    (texts / "en").mkdir()
    (texts / "en" / "00-short.toml").write_text(LESSON, encoding="utf-8")
    for name, more in (("checkpoint", "elsewhere"), ("page", "masks")):  # two lessons that the page cannot show
        old = {"checkpoint": "tiny-bert", "page": "overview"}[name]
        changed = LESSON.replace(f'{name} = "{old}"', f'{name} = "{more}"')
        (texts / "en" / f"01-{name}.toml").write_text(changed, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lesson_files, "LESSONS", texts)
        sizes = write_site(out, models, app="http://127.0.0.1:1")
    assert {"index.html", "site.js", "worker.js", "onnxruntime.wasm.gz", "LICENSES.txt"} <= set(sizes)
    return out


@pytest.fixture
def site(folder, serve, browser) -> Iterator[Site]:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    yield Site(serve(folder), page)
    page.close()


def agree(found: bytes, wanted: CanvasFigure) -> None:
    """Check that the browser's bytes contain the same metadata and numbers as Python's figure."""
    metadata, arrays = unpack(found)
    same_metadata, same = unpack(wanted.packed())
    for parts in (metadata, same_metadata):
        for one in parts.get("attentions", []):
            one.pop("exact")
    assert metadata == same_metadata
    assert arrays.keys() == same.keys()
    for name, values in same.items():
        mine = arrays[name]
        if name.endswith(".units"):  # units of equal strength may be swapped: their values are compared
            continue
        assert mine.shape == values.shape, name
        if values.dtype == np.uint16:
            values = values / 65535
        if values.dtype == np.uint8:
            assert np.abs(mine.astype(int) - values).max() <= (0 if "mask" in name or "allowed" in name else 1), name
        else:
            apart = float(np.abs(mine - values).max(initial=0.0))
            assert apart <= max(TOLERANCE, ROUNDING * float(np.abs(values).max(initial=0.0))), (name, apart)


def figures_agree(site: Site, checkpoint: Checkpoint, sentence: str, target: str | None, language: str = "en") -> None:
    """Compare the figures of the three pages that draw attention, from the browser and from Python."""
    traced: Trace = transformer.trace(checkpoint, sentence, target)
    stack, kind = traced.attention_kinds()[-1]
    layer, head, token = traced.n_layers(stack) - 1, 1, len(traced.tokens(stack)) - 1
    place = {"stack": stack, "kind": kind, "layer": layer, "head": head, "token": token}

    def drawn(page: str) -> bytes:
        inside = {"stack": stack, "layer": layer}
        said = site.ask(sentence, page, target=target or "", language=language, place=place, inside=inside)
        assert said["text"] == traced.text
        for name, tokens in said["stacks"].items():
            assert [one["id"] for one in tokens] == list(traced.tokens(name).ids)
        return said["figure"]

    with use_language(language):
        picture = living_picture_numbers(traced, inside=[(stack, layer)])
        agree(drawn("overview"), add_captions(living_picture_canvas(picture, begin=place)))
        view = traced.attention(stack, layer, kind)
        rows = predicted_rows(traced, kind)
        shown = attention_map(view, head=head, shifted_labels=rows, chosen_row=token)
        agree(drawn("attention"), add_captions(shown))
        views = [[traced.attention(s, n, k) for n in range(traced.n_layers(s))] for s, k in traced.attention_kinds()]
        agree(drawn("heads"), add_captions(attention_overview(views, selected=AnyHead(stack, kind, layer, head))))


@pytest.mark.parametrize(
    "sentence", ["a", "The cat sat on the mat.", "Élan 😀 </s> œuvre\u2019s\n“the the the”", "Ok " * 20]
)
def test_the_browser_computes_what_python_does(site: Site, tiny_checkpoint, sentence: str) -> None:
    site.open()
    figures_agree(site, tiny_checkpoint("translator"), sentence, "Le chat dort.")
    figures_agree(site, tiny_checkpoint("translator"), sentence, None, "fr")
    assert site.errors == []


def test_a_row_and_its_effect_are_stated_as_in_the_app(site: Site, tiny_checkpoint) -> None:
    checkpoint, sentence, head, row = tiny_checkpoint("translator"), "The cat sat on the mat.", 1, 3
    traced = transformer.trace(checkpoint, sentence, "Le chat dort.")
    site.open("?checkpoint=tiny-translator")
    text = page_text("attention")
    for kind in ("cross", "self"):
        place = {"stack": "decoder", "kind": kind, "layer": 1, "head": head, "token": row}
        found = site.ask(sentence, "attention", target="Le chat dort.", place=place)
        effect = head_effect(traced, "decoder", 1, kind, head=head)
        wanted = text["effect_value"].format(what=text["effect_what"], factor=three_digits(effect.factor))
        assert found["effect"]["value"] == wanted
        predicted = traced.prediction.labels[row] if kind == "cross" else None
        wanted = read_aloud(text, traced.attention("decoder", 1, kind), head=head, row=row, predicted=predicted)
        assert aloud(found) == wanted.replace("\\", "")  # the marks that Markdown needs


def aloud(found: dict[str, Any]) -> str:
    return "".join(template.format(**values) for template, values in found["aloud"])


def test_a_head_is_removed(site: Site, tiny_checkpoint) -> None:
    checkpoint, sentence = tiny_checkpoint("translator"), "The cat sat on the mat."
    site.open("?checkpoint=tiny-translator")
    edits = edits_from(checkpoint, ["zero:decoder.1.cross.0"])
    said = site.ask(sentence, "attention", removed=[["decoder", "cross", 1, 0]])
    assert said["text"] == transformer.trace(checkpoint, sentence, edits=edits).text
    assert said["whole"] == transformer.trace(checkpoint, sentence).text


@pytest.mark.parametrize("language", ["en", "fr"])
def test_the_steps_of_decoding_are_those_of_the_app(site: Site, tiny_checkpoint, language: str) -> None:
    traced = transformer.trace(tiny_checkpoint("translator"), "The cat sat on the mat.")
    site.open("?checkpoint=tiny-translator")
    place = {"stack": "decoder", "kind": "cross", "layer": 1, "head": 0, "token": 0}
    drawn = site.ask("The cat sat on the mat.", "decoding", language=language, place=place)["figure"]
    found, arrays = unpack(drawn)
    view, tokens = traced.attention("decoder", 1, "cross"), traced.prediction
    weights = np.clip(view.weights.mean(0), 0, 1)
    bars = [
        StepBars(("",), (token.display,), (1.0,), 0.0, 0, weights[row], view.allowed[row])
        for row, token in enumerate(tokens)
    ]
    with use_language(language):
        text = page_text("decoding")["attention_of"]["mean"].format(layer=1, count=view.n_heads)
        before = [traced.target[0]]
        drawn = add_captions(written_steps(bars, tokens=tokens, key=view.key, of=text, before=before))
    wanted, same = unpack(drawn.packed())
    for one in (found, wanted):
        for varies in ("said", "candidates", "chosen"):
            assert len(one.pop(varies)) == len(tokens)
    assert found == wanted
    assert np.abs(arrays["weights"].astype(int) - same["weights"]).max() <= 2
    assert (arrays["allowed"] == same["allowed"]).all()


def test_every_map_follows_the_theme(site: Site) -> None:
    site.open("?checkpoint=tiny-translator&page=attention")
    pictures = """() => [...document.querySelectorAll("#app *")]
        .map((one) => one.shadowRoot?.querySelector("canvas"))
        .filter((canvas) => canvas?.checkVisibility())
        .map((canvas) => canvas.toDataURL())"""
    site.page.wait_for_function(f"() => ({pictures})().length > 0")
    light = site.page.evaluate(pictures)
    try:
        site.page.emulate_media(color_scheme="dark")
        site.page.wait_for_function(f"(light) => ({pictures})().every((dark, k) => dark !== light[k])", arg=light)
    finally:
        site.page.emulate_media(color_scheme="light")


def test_lessons_are_offered_with_at_most_one_step_in_the_app() -> None:
    def offered(*checkpoints: str, links_to_app: bool = True) -> dict[str, list[str]]:
        found = lessons_for(checkpoints, ("en", "fr"), links_to_app=links_to_app)
        return {lesson["name"][:2]: [step["address"].split("?")[0] for step in lesson["steps"]] for lesson in found}

    assert offered("en-fr") == {"00": [*[""] * 6, "masks"]}
    assert offered("en-fr", links_to_app=False) == {"00": [""] * 6}
    assert offered("en-fr", "en-fr-sharp").keys() == {"00"}
    assert offered("gpt-en") == {}


@pytest.mark.parametrize(
    ("query", "shown", "in_app"),
    [
        ("page=masks&mask=word+1", "attention", "?page=masks&mask=word+1"),
        ("page=by_hand&hand_words=0.1", "overview", "?page=by_hand&hand_words=0.1"),
        ("page=attention&second=A+dog.", "attention", "?page=compare&second=A+dog."),
        ("page=attention&attention_section=trust", "attention", "?page=attention&attention_section=trust"),
        ("edit=drop%3Adecoder.0.cross", "overview", "?edit=drop%3Adecoder.0.cross&page=surgery"),
        ("lesson=03-one-head&lesson_step=2", "overview", "?lesson=03-one-head&lesson_step=2"),
        ("page=heads&edit=zero%3Adecoder.0.cross.1", "heads", ""),
    ],
)
def test_a_link_to_what_only_the_app_has_opens_the_nearest_page(
    site: Site, query: str, shown: str, in_app: str
) -> None:
    site.open(f"?{query}")
    assert site.page.evaluate("[glassformerSite.state.page, glassformerSite.state.lesson]") == [shown, ""]
    said = site.page.get_by_text("This link names something that only the app has.")
    expect(said).to_have_count(1 if in_app else 0)
    if in_app:
        expect(said.get_by_role("link")).to_have_attribute("href", f"http://127.0.0.1:1/{in_app}")
    assert site.errors == []


@pytest.mark.parametrize("sentence", ["___", "The ___ sat on the [MASK].", "She reads."])
def test_blanks_are_filled_as_in_python(site: Site, tiny_checkpoint, sentence: str) -> None:
    site.open("?checkpoint=tiny-bert")
    figures_agree(site, tiny_checkpoint("bert"), sentence, None)


def test_a_word_is_masked_as_in_the_app_and_the_effect_names_what_is_predicted(site: Site, tiny_checkpoint) -> None:
    checkpoint, sentence = tiny_checkpoint("bert"), "The old cat, don’t you think, sat on it."
    masked = masked_word(checkpoint, sentence)
    site.open(f"?checkpoint=tiny-bert&page=attention&sentence={quote(sentence)}&stack=encoder&kind=self")
    assert masked is not None and site.page.evaluate("glassformerSite.found.masked.word.text") == masked.text
    traced = transformer.trace(checkpoint, masked.sentence)
    expect(site.page.locator(".answer")).to_contain_text(traced.text)
    text, effect = page_text("attention"), head_effect(traced, "encoder", 0, "self", head=0)
    what = plain_word(effect.displays[0])
    said = site.page.locator(".effect")
    expect(said).to_contain_text(text["effect_of_one"].format(what=what))
    expect(said).to_contain_text(text["effect_value"].format(what=what, factor=three_digits(effect.factor)))
    choice = site.page.get_by_label("Masked word", exact=True)
    assert choice.locator("option").all_inner_texts()[:-1] == list(words_in(sentence))
    for chosen in ("0", NONE):
        choice.select_option(chosen)
        one = masked_word(checkpoint, sentence, chosen)
        read = transformer.trace(checkpoint, sentence if one is None else one.sentence)
        expect(site.page.locator(".answer")).to_contain_text(read.text)
        assert eventually(site.page, lambda chosen=chosen: f"masked={chosen}" in site.page.url, True)
    site.page.get_by_label("Sentence").fill("An old cat sat.")
    assert eventually(site.page, lambda: "masked=none" in site.page.url, True)
    assert site.errors == []


@pytest.mark.parametrize("name", ["translator", "bert"])
def test_a_typed_sentence_opens_at_the_head_of_the_app(site: Site, tiny_checkpoint, name: str) -> None:
    checkpoint, sentence = tiny_checkpoint(name), "The old cat sat on the mat and slept."
    site.open(f"?checkpoint=tiny-{name}&page=attention&sentence={quote(sentence)}")
    masked = masked_word(checkpoint, sentence)
    traced = transformer.trace(checkpoint, sentence if masked is None else masked.sentence)
    row, _ = traced.attention("encoder", 0, "self").strongest_pair(0)
    place = """() => { const { stack, kind, layer, head, token } = glassformerSite.state;
        return [stack, kind, layer, head, token]; }"""
    assert site.page.evaluate(place) == ["encoder", "self", 0, 0, row]
    site.page.get_by_label("Head", exact=True).select_option("1")  # from now on the head stays
    site.page.get_by_label("Sentence").first.fill("A dog sat.")
    assert eventually(site.page, lambda: "sentence=A+dog+sat." in site.page.url, True)
    assert "&head=1&" in site.page.url
    assert site.errors == []


def test_a_row_of_patches_is_read_aloud_as_in_the_app(site: Site) -> None:
    site.open("?checkpoint=vit-digits")
    sentence = site.page.evaluate("glassformerSite.state.sentence")
    checkpoint = transformer.load(CHECKPOINTS / "vit-digits")
    view = transformer.trace(checkpoint, sentence).attention("encoder", 0, "self")
    text = text_for(page_text("attention"), checkpoint.config)
    for row in range(len(view.query)):
        said = aloud(site.ask(sentence, "attention", place={**PLACE, "head": 2, "token": row}))
        assert said == read_aloud(text, view, head=2, row=row).replace("\\", "")


def test_a_digit_is_drawn_and_read(site: Site) -> None:
    site.open("?checkpoint=vit-digits&language=en")
    checkpoint = transformer.load(CHECKPOINTS / "vit-digits")
    field = site.page.get_by_role("textbox", name="Image")
    figures_agree(site, checkpoint, field.input_value(), None)
    site.page.get_by_role("button", name="Clear").click()
    pad = site.page.get_by_role("img", name="Drawing area").bounding_box()
    x, y = pad["x"] + pad["width"] / 2, pad["y"]
    site.page.mouse.move(x, y + 20)
    site.page.mouse.down()
    site.page.mouse.move(x, y + pad["height"] - 20, steps=12)
    site.page.mouse.up()
    drawn = field.input_value()
    assert sum(sign == "g" for sign in drawn) >= 6
    site.page.wait_for_url(f"**sentence={drawn}**")
    expect(site.page.locator(".answer")).to_have_text(f"→ {transformer.trace(checkpoint, drawn).text}")
    refused = site.ask("12", "overview")["said"]
    assert refused.startswith("The picture has 2 pixels; this model reads 8 × 8, which makes 64")


def test_a_typed_sentence_survives_a_change_of_language_and_of_model(site: Site) -> None:
    """Also one soon after the last key, and a detour through a model of images."""
    site.open("?checkpoint=tiny-translator&language=en")
    page, box = site.page, site.page.locator("textarea[name=sentence]")

    def shown() -> list[str]:
        return page.evaluate(
            "[document.querySelector('.figure').ariaBusy, new URLSearchParams(location.search).get('sentence')]"
        )

    box.fill("The dog sleeps.")
    page.get_by_label("Language", exact=True).select_option("fr")
    assert eventually(page, shown, ["false", "The dog sleeps."])
    expect(box).to_have_value("The dog sleeps.")
    box.fill("The old dog sleeps.")
    page.get_by_label("Modèle", exact=True).select_option("vit-digits")
    page.wait_for_url("**checkpoint=vit-digits**")
    page.get_by_label("Modèle", exact=True).select_option("tiny-bert")
    assert eventually(page, shown, ["false", "The old dog sleeps."])
    expect(box).to_have_value("The old dog sleeps.")
    assert site.errors == []


def test_the_page_works_without_a_network_after_the_first_visit(folder, tmp_path, browser) -> None:
    """What lies beside the page is the server's; a model that was never loaded promises nothing."""
    shutil.copytree(folder, tmp_path / "site")
    (tmp_path / "site" / "blog").mkdir()
    for path in ("blog/index.html", "other.html"):
        (tmp_path / "site" / path).write_text(f"<title>{path}</title>")
    handler = functools.partial(Quiet, directory=str(tmp_path / "site"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    site = Site(f"http://127.0.0.1:{server.server_address[1]}", browser.new_page())
    site.open()
    site.page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    for path in ("blog/", "other.html"):
        site.page.goto(f"{site.address}/{path}")
        assert site.page.title() in ("blog/index.html", "other.html")
    for query in ("", "?language=en"):
        site.page.goto(f"{site.address}/LICENSES.txt{query}")
        expect(site.page.locator("pre")).to_contain_text("onnxruntime")
    server.shutdown()
    server.server_close()
    for path in ("", "index.html"):
        site.page.goto(f"{site.address}/{path}?sentence=The+dog+sleeps.&language=en")
        expect(site.page.locator(".answer")).to_have_text(ANSWERED)
    assert site.errors == []
    site.page.get_by_label("Model", exact=True).select_option("tiny-bert")
    answer = site.page.locator(".answer")
    expect(answer).to_have_text(re.compile("^The model could not be loaded: "))
    expect(answer.get_by_role("button", name="Try again")).to_be_visible()
    expect(answer).not_to_contain_text("recorded")
    site.page.close()


def test_one_file_opens_without_a_server(tmp_path, checkpoints_folder, browser) -> None:
    file = tmp_path / "glassformer.html"
    assert write_single_file(file, [checkpoints_folder / "tiny-bert"]) == file.stat().st_size
    site = Site(file.as_uri(), browser.new_page())
    site.page.goto(f"{site.address}?sentence=The+___+sat.&language=en")
    site.page.wait_for_selector(".figure[data-shown]")
    expect(site.page.locator(".answer")).to_have_text(ANSWERED)
    assert site.errors == []
    site.page.close()


@pytest.mark.parametrize("content", [None, b"<html>no such file</html>"], ids=["missing", "other bytes"])
def test_a_broken_download_leaves_a_sentence_and_a_recorded_picture(folder, tmp_path, serve, browser, content) -> None:
    shutil.copytree(folder, tmp_path / "site")
    weights = tmp_path / "site" / "models" / "tiny-translator" / "model.safetensors.gz"
    whole = weights.read_bytes()
    weights.unlink() if content is None else weights.write_bytes(content)
    page = browser.new_page()
    page.goto(f"{serve(tmp_path / 'site')}/?language=en")
    page.wait_for_selector(".figure canvas")
    expect(page.locator(".answer")).to_have_text(re.compile("^The model could not be loaded: .*recorded by this model"))
    weights.write_bytes(whole)
    page.get_by_role("button", name="Try again").click()
    page.wait_for_selector(".figure[data-shown]")
    expect(page.locator(".answer")).to_have_text(ANSWERED)
    page.close()


def test_a_text_that_the_model_cannot_read_gets_the_apps_sentence(site: Site, tiny_checkpoint) -> None:
    site.open()
    for sentence in (" ", "a b c " * 60):
        with pytest.raises(transformer.errors.InputError) as refused:
            transformer.trace(tiny_checkpoint("translator"), sentence)
        said = site.ask(sentence, "overview")["said"]
        assert said == str(refused.value)


def test_the_page_is_used_on_a_phone(site: Site) -> None:
    site.open("?sentence=The+cat+sat.&stack=decoder&kind=cross&layer=1&head=1&language=en")
    page = site.page
    for tab in ("Tokens", "Attention", "All heads", "Decoding", "Living picture"):
        page.get_by_role("tab", name=tab).click()
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        small = page.evaluate(SMALL)
        assert small == []
    page.get_by_role("tab", name="Attention").click()
    page.get_by_role("button", name="Remove head").click()
    page.wait_for_url("**edit=zero%3Adecoder.1.cross.1**")
    page.get_by_role("textbox", name="Sentence").fill("The dog sleeps.")
    page.wait_for_url("**sentence=The+dog+sleeps.**")
    begins = re.escape("http://127.0.0.1:1/surgery?checkpoint=tiny-translator&sentence=The+dog+sleeps.")
    link = page.get_by_role("link", name="Open in the app")
    expect(link).to_have_attribute("href", re.compile(f"^{begins}"))
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector(".figure[data-shown]", timeout=120_000)
    expect(page.get_by_role("textbox", name="Sentence")).to_have_value("The dog sleeps.")
    expect(page.get_by_role("button", name="Put back").first).to_be_visible()
    assert site.errors == []


def test_a_lesson_is_played_with_a_wrong_guess_first(site: Site) -> None:
    """The reader's own sentence and model come back; what cannot be shown here is not offered."""
    site.open("?checkpoint=tiny-translator&sentence=The+dog+sleeps.&language=en")
    page = site.page
    lessons = page.get_by_label("Lessons…", exact=True)
    expect(lessons.locator("option")).to_have_text(["Lessons…", "A short lesson"])
    lessons.select_option("00-short")
    page.wait_for_url("**checkpoint=tiny-bert**lesson=00-short**")
    bar = page.get_by_role("region", name="A short lesson")
    picture = page.locator(".figure canvas").first
    for size in ({"width": 1280, "height": 720}, {"width": 390, "height": 844}):  # the bar covers nothing
        page.set_viewport_size(size)
        expect(bar).to_be_in_viewport(ratio=1)
        expect(picture).to_be_in_viewport(ratio=1)

        def is_covered() -> bool:
            shown, said = painted(picture)[1], bar.bounding_box()
            return shown["x"] + shown["width"] > said["x"] and shown["y"] + shown["height"] > said["y"]

        assert eventually(page, is_covered, False)
    bar.get_by_text("a layer", exact=True).click()
    bar.get_by_role("button", name="Check").click()
    expect(bar.get_by_role("status")).to_contain_text("Layers are rows. Hint: Count them.")
    expect(bar.get_by_role("radio")).to_have_count(2)
    bar.get_by_text("a token", exact=True).click()
    bar.get_by_role("button", name="Check").click()
    expect(bar.get_by_role("status")).to_contain_text("Right: a token. Each has one.")
    bar.get_by_role("button", name="Next").click()
    bar.get_by_text("This task is about a page that only the app has: Masks.").wait_for()
    expect(bar.get_by_role("radio")).to_have_count(0)
    expect(bar.get_by_role("link")).to_have_attribute("href", re.compile("127.0.0.1:1/masks.*lesson_step=2$"))
    assert page.evaluate(SMALL) == []
    page.go_back()
    bar.get_by_text("1 / 2").wait_for()
    page.go_forward()
    bar.get_by_text("2 / 2").wait_for()
    bar.get_by_role("button", name="Finish").click()
    page.get_by_text("You answered 1 questions, 0 correctly on the first try and 1 in the end.").wait_for()
    page.wait_for_url("**checkpoint=tiny-translator&sentence=The+dog+sleeps.**")
    assert site.errors == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["en-fr", "gpt-en", "bert-en"])
def test_a_shipped_model_agrees_on_twenty_sentences(name: str, tmp_path, serve, browser) -> None:
    folder = CHECKPOINTS / name
    write_site(tmp_path, [folder])
    site = Site(serve(tmp_path), browser.new_page())
    site.open()
    checkpoint = transformer.load(folder)
    for sentence in SENTENCES:
        figures_agree(site, checkpoint, sentence, None)
    if name == "en-fr":
        figures_agree(site, checkpoint, "I love you.", "Je t'adore.", "fr")


@pytest.mark.nightly
@pytest.mark.skipif(executable() is None, reason="apt-get install firefox-esr")
def test_firefox_computes_what_python_does(folder, serve, tiny_checkpoint) -> None:
    place = {"stack": "decoder", "kind": "cross", "layer": 1, "head": 1}
    with firefox() as tab:
        view = "&".join(f"{name}={value}" for name, value in place.items())
        tab.open(f"{serve(folder)}/?checkpoint=tiny-translator&page=attention&language=en&{view}")
        tab.wait_for("document.querySelector('.figure[data-shown]')")
        tab.evaluate("document.querySelector('textarea').select()")
        tab.type("The dog sleeps.")
        tab.wait_for("location.search.includes('sentence=The+dog+sleeps.')")
        traced = transformer.trace(tiny_checkpoint("translator"), "The dog sleeps.")
        shown = tab.evaluate("document.querySelector('.answer').textContent")
        assert shown.startswith(f"→ {traced.text}")  # perhaps with a note that it did not end
        request = {"sentence": "The dog sleeps.", "target": "", "forced": [], "removed": []}
        view = {"page": "attention", "place": {**place, "token": 0}}
        asked = json.dumps({"request": request, "view": view, "language": "en"})
        drawn = base64.b64decode(tab.evaluate(f"({ASK})({asked})")["figure"])
    rows = predicted_rows(traced, "cross")
    with use_language("en"):
        agree(
            drawn,
            add_captions(
                attention_map(traced.attention("decoder", 1, "cross"), head=1, shifted_labels=rows, chosen_row=0)
            ),
        )


SENTENCES = (
    "a",
    "I",
    "I love you.",
    "The cat sat on the mat.",
    "She gave me a red flower.",
    "The white house is very old.",
    "My brother is tall, but my sister is small.",
    "He never drinks coffee.",
    "I know that you know that I know.",
    "If you want to come with us, you have to be at the station at eight.",
    "Привет means hello in Russian.",
    "Le chat est noir.",
    "Émile’s naïve café — “déjà vu”…",
    "😀 👩‍👩‍👧 🇫🇷",
    "</s> <pad> <s> are no tokens here",
    "  two  spaces   and a\ttab",
    "line\nbreak",
    "1,234.56 + 7 = ?",
    "日本語の文。",
    "the sea and the sky and " * 19,
)
