"""The site in a real Chromium shows what Python computes: every packed figure, number by number."""

from __future__ import annotations

import base64
import functools
import http.server
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

import transformer
from charts.canvas.attention_maps import attention_map, attention_overview, predicted_rows
from charts.canvas.figure import CanvasFigure
from charts.canvas.living_picture_canvas import living_picture_canvas
from charts.canvas.written_steps import StepBars, written_steps
from charts.toolkit.payload_bytes import unpack
from charts.toolkit.style import three_digits
from tests.browser.conftest import eventually
from tests.browser.drawing import Drawing
from transformer.files.checkpoints import Checkpoint
from transformer.interventions.head_importance import head_effect
from transformer.predictions.living_picture_numbers import living_picture_numbers
from transformer.runs.edit_specs import edits_from
from transformer.runs.masked_word import NONE, masked_word, words_in
from transformer.runs.traces import Trace
from ui.shell.focus_controls import text_for
from ui.shell.guidance import lessons as lesson_files
from ui.show.drawings import add_captions
from ui.words.texts import PageText, page_text, plain_word, use_language
from views.attention.attention_sections import one_head, row_claim
from web.lessons import lessons_for
from web.site import write_single_file, write_site

CHECKPOINTS = Path(__file__).resolve().parents[2] / "checkpoints"
ANSWERED = re.compile("^→ ")
TOLERANCE = 2e-5
PHONE = {"width": 390, "height": 844}
AT_REST = {"reduced_motion": "reduce"}  # without a graphics card, moving pictures take a third of the processor
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
    """A site on a loopback port, and a tab of the browser, with its errors and requests to other hosts."""

    def __init__(self, address: str, page: Page) -> None:
        self.address, self.page = address, page
        self.checkpoint = ""  # what ``of`` has opened
        page.set_default_timeout(60_000)  # a busy machine may be slow
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        page.on("request", lambda sent: self.errors.append(sent.url) if not self._own(sent.url) else None)

    def _own(self, url: str) -> bool:
        return url.startswith((self.address, "data:", "blob:"))

    def open(self, query: str = "") -> None:
        self.page.goto(f"{self.address}/{query}")
        self.is_shown()
        assert self.errors == []

    def is_shown(self) -> None:
        self.page.wait_for_selector(".figure[data-shown]", timeout=120_000)

    def of(self, checkpoint: str) -> Site:
        """Open a checkpoint, unless it is open."""
        if self.checkpoint != checkpoint:
            self.open(f"?checkpoint={checkpoint}")
            self.checkpoint = checkpoint
        return self

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


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Yield the address of a plain web server for a folder."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


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
    """A site with a tiny translator, a model that fills blanks, and a lesson."""
    out, texts = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("lessons")
    models = [checkpoints_folder / "tiny-translator", checkpoints_folder / "tiny-bert"]
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


@pytest.fixture(scope="module")
def open_site(folder: Path, chromium: Browser) -> Iterator[Callable[[], Site]]:
    """Return ``open_site()``: the site on a phone, in a new tab, which has what the others have loaded."""
    with served(folder) as address, chromium.new_context(viewport=PHONE, **AT_REST) as context:
        yield lambda: Site(address, context.new_page())


@pytest.fixture
def site(open_site: Callable[[], Site]) -> Iterator[Site]:
    site = open_site()
    yield site
    site.page.close()
    assert site.errors == []


@pytest.fixture(scope="module")
def worker(open_site: Callable[[], Site]) -> Callable[[str], Site]:
    """Return ``worker(checkpoint)``: a site that stays open, for tests that only ask its worker."""
    return open_site().of


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
        every = attention_overview(views).with_metadata(selected=[stack, kind, layer, head])
        agree(drawn("heads"), add_captions(every))


@pytest.mark.sample(of=2)
@pytest.mark.parametrize(
    "sentence", ["a", "The cat sat on the mat.", "Élan 😀 </s> œuvre\u2019s\n“the the the”", "Ok " * 20]
)
def test_the_browser_computes_what_python_does(worker, tiny_checkpoint, sentence: str) -> None:
    site = worker("tiny-translator")
    figures_agree(site, tiny_checkpoint("translator"), sentence, "Le chat dort.")
    figures_agree(site, tiny_checkpoint("translator"), sentence, None, "fr")


def test_a_row_and_its_effect_are_stated_as_in_the_app(worker, tiny_checkpoint) -> None:
    checkpoint, sentence, head, row = tiny_checkpoint("translator"), "The cat sat on the mat.", 1, 3
    traced, site = transformer.trace(checkpoint, sentence, "Le chat dort."), worker("tiny-translator")
    text = page_text("attention")
    for kind in ("cross", "self"):
        place = {"stack": "decoder", "kind": kind, "layer": 1, "head": head, "token": row}
        found = site.ask(sentence, "attention", target="Le chat dort.", place=place)
        effect = head_effect(traced, "decoder", 1, kind, head=head)
        wanted = text["effect_value"].format(what=text["effect_what"], factor=three_digits(effect.factor))
        assert found["effect"]["value"] == wanted
        predicted = traced.prediction.labels[row] if kind == "cross" else None
        assert aloud(found) == wanted_claim(text, traced.attention("decoder", 1, kind), head, row, predicted)


def wanted_claim(text: PageText, view: transformer.AttentionView, head: int, row: int, predicted: str | None) -> str:
    key, values = row_claim(one_head(view, head), row, head=head, label=predicted or view.query.labels[row])
    if view.query.is_class_token(row):
        values["row"] = text["class_token"]
    key += "_predicting" * (predicted is not None)
    return text[key].format(**{**values, "share": three_digits(values["share"])})


def aloud(found: dict[str, Any]) -> str:
    return "".join(template.format(**values) for template, values in found["aloud"])


def test_a_head_is_removed(worker, tiny_checkpoint) -> None:
    checkpoint, sentence = tiny_checkpoint("translator"), "The cat sat on the mat."
    edits = edits_from(checkpoint, ["zero:decoder.1.cross.0"])
    said = worker("tiny-translator").ask(sentence, "attention", removed=[["decoder", "cross", 1, 0]])
    assert said["text"] == transformer.trace(checkpoint, sentence, edits=edits).text
    assert said["whole"] == transformer.trace(checkpoint, sentence).text


@pytest.mark.parametrize("language", ["en", "fr"])
def test_the_steps_of_decoding_are_those_of_the_app(worker, tiny_checkpoint, language: str) -> None:
    sentence, site = "The cat sat on the mat.", worker("tiny-translator")
    traced = transformer.trace(tiny_checkpoint("translator"), sentence)
    place = {"stack": "decoder", "kind": "cross", "layer": 1, "head": 0, "token": 0}
    drawn = site.ask(sentence, "decoding", language=language, place=place)["figure"]
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


def test_a_text_that_the_model_cannot_read_gets_the_apps_sentence(worker, tiny_checkpoint) -> None:
    for sentence in (" ", "a b c " * 60):
        with pytest.raises(transformer.errors.InputError) as refused:
            transformer.trace(tiny_checkpoint("translator"), sentence)
        assert worker("tiny-translator").ask(sentence, "overview")["said"] == str(refused.value)


def test_lessons_are_offered_with_at_most_one_step_in_the_app() -> None:
    def offered(*checkpoints: str, links_to_app: bool = True) -> dict[str, list[str]]:
        found = lessons_for(checkpoints, ("en", "fr"), links_to_app=links_to_app)
        return {lesson["name"][:2]: [step["address"].split("?")[0] for step in lesson["steps"]] for lesson in found}

    assert offered("en-fr") == {"00": [*[""] * 6, "masks"]}
    assert offered("en-fr", links_to_app=False) == {"00": [""] * 6}
    assert offered("en-fr", "en-fr-sharp").keys() == {"00"}
    assert offered("gpt-en") == {}


@pytest.mark.parametrize("sentence", ["___", "The ___ sat on the [MASK].", "She reads."])
def test_blanks_are_filled_as_in_python(worker, tiny_checkpoint, sentence: str) -> None:
    figures_agree(worker("tiny-bert"), tiny_checkpoint("bert"), sentence, None)


def test_a_word_is_masked_as_in_the_app_and_the_effect_names_what_is_predicted(site: Site, tiny_checkpoint) -> None:
    checkpoint, sentence = tiny_checkpoint("bert"), "The old cat, don’t you think, sat on it."
    masked = masked_word(checkpoint, sentence)
    site.open(f"?checkpoint=tiny-bert&page=attention&sentence={quote(sentence)}")
    assert masked is not None and opens_at(site, transformer.trace(checkpoint, masked.sentence))
    assert site.page.evaluate("glassformerSite.found.masked.word.text") == masked.text
    traced = transformer.trace(checkpoint, masked.sentence)
    expect(site.page.locator(".answer")).to_contain_text(traced.text)
    text, effect = page_text("attention"), head_effect(traced, "encoder", 0, "self", head=0)
    what = plain_word(effect.asked.displays[0])
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


def opens_at(site: Site, traced: Trace) -> bool:
    """Return whether the page shows the head with which the app opens a sentence, and its largest weight."""
    place = "(({ stack, kind, layer, head, token }) => [stack, kind, layer, head, token])(glassformerSite.state)"
    row, _ = traced.attention("encoder", 0, "self").strongest_pair(0)
    return site.page.evaluate(place) == ["encoder", "self", 0, 0, row]


@pytest.mark.nightly
def test_a_digit_is_read_aloud_drawn_and_read_and_a_sentence_waits(
    tmp_path: Path, checkpoints_folder: Path, chromium: Browser
) -> None:
    folder = CHECKPOINTS / "vit-digits"
    write_site(tmp_path, [checkpoints_folder / "tiny-bert", folder])
    checkpoint = transformer.load(folder)
    with served(tmp_path) as address, chromium.new_context() as context:
        site = Site(address, context.new_page())
        site.open("?checkpoint=tiny-bert&language=en")
        page, box = site.page, site.page.locator("textarea[name=sentence]")
        box.fill("The old dog sleeps.")
        model = page.get_by_label("Model", exact=True)
        model.select_option("vit-digits")
        page.wait_for_url("**checkpoint=vit-digits**")
        site.is_shown()
        field = page.get_by_role("textbox", name="Image")
        image, text = field.input_value(), text_for("attention", checkpoint.config)
        figures_agree(site, checkpoint, image, None)
        view = transformer.trace(checkpoint, image).attention("encoder", 0, "self")
        for row in range(len(view.query)):
            said = aloud(site.ask(image, "attention", place={**PLACE, "head": 2, "token": row}))
            assert said == wanted_claim(text, view, 2, row, None)
        refused = site.ask("12", "overview")["said"]
        assert refused.startswith("The picture has 2 pixels; this model reads 8 × 8, which makes 64")

        page.get_by_role("button", name="Clear").click()
        pad = page.get_by_role("img", name="Drawing area").bounding_box()
        x, y = pad["x"] + pad["width"] / 2, pad["y"]
        page.mouse.move(x, y + 20)
        page.mouse.down()
        page.mouse.move(x, y + pad["height"] - 20, steps=12)
        page.mouse.up()
        drawn = field.input_value()
        assert sum(sign == "g" for sign in drawn) >= 6
        page.wait_for_url(f"**sentence={drawn}**")
        expect(page.locator(".answer")).to_have_text(f"→ {transformer.trace(checkpoint, drawn).text}")
        model.select_option("tiny-bert")
        page.wait_for_url("**sentence=The+old+dog+sleeps.**")
        expect(box).to_have_value("The old dog sleeps.")
        assert site.errors == []


def test_a_typed_sentence_survives_a_change_of_head_of_language_and_of_model(site: Site, tiny_checkpoint) -> None:
    """Also one soon after the last key; a detour through a model of images is tried at night."""
    sentence = "The old cat sat on the mat and slept."
    site.open(f"?checkpoint=tiny-translator&language=en&page=attention&sentence={quote(sentence)}")
    assert opens_at(site, transformer.trace(tiny_checkpoint("translator"), sentence))
    page, box = site.page, site.page.locator("textarea[name=sentence]")

    def is_read(sentence: str) -> bool:
        shown = "[document.querySelector('.figure').ariaBusy, new URLSearchParams(location.search).get('sentence')]"
        return eventually(page, lambda: page.evaluate(shown), ["false", sentence])

    page.get_by_label("Head", exact=True).select_option("1")  # from now on the head stays
    box.fill("A dog sat.")
    assert is_read("A dog sat.") and "&head=1&" in page.url
    box.fill("The dog sleeps.")
    page.get_by_label("Language", exact=True).select_option("fr")
    assert is_read("The dog sleeps.")
    expect(box).to_have_value("The dog sleeps.")
    box.fill("The old dog sleeps.")
    page.get_by_label("Modèle", exact=True).select_option("tiny-bert")
    assert is_read("The old dog sleeps.")
    expect(box).to_have_value("The old dog sleeps.")


@pytest.mark.sample
@pytest.mark.parametrize(("broken", "paths"), [(None, ("",)), (b"<html>no such file</html>", ("", "index.html"))])
def test_a_broken_download_leaves_a_recorded_picture_and_a_whole_one_needs_no_network(
    folder: Path, tmp_path: Path, chromium: Browser, broken: bytes | None, paths: tuple[str, ...]
) -> None:
    """What lies beside the page is the server's; a model that was never loaded promises nothing."""
    copied = shutil.copytree(folder, tmp_path / "site")
    (copied / "blog").mkdir()
    for other in ("blog/index.html", "other.html"):
        (copied / other).write_text(f"<title>{other}</title>")
    weights = copied / "models" / "tiny-translator" / "model.safetensors.gz"
    whole = weights.read_bytes()
    with chromium.new_context(**AT_REST) as context:
        page = context.new_page()
        answer, again = page.locator(".answer"), page.get_by_role("button", name="Try again")
        with served(copied) as address:
            weights.unlink() if broken is None else weights.write_bytes(broken)
            page.goto(f"{address}/?language=en")
            page.wait_for_selector(".figure canvas")
            expect(answer).to_have_text(re.compile("^The model could not be loaded: .*recorded by this model"))
            weights.write_bytes(whole)
            again.click()
            page.wait_for_selector(".figure[data-shown]")
            expect(answer).to_have_text(ANSWERED)

            site = Site(address, page)  # from now on, errors count
            page.evaluate("navigator.serviceWorker.ready.then(() => true)")
            for other in ("blog/", "other.html"):
                page.goto(f"{address}/{other}")
                assert page.title() in ("blog/index.html", "other.html")
            for query in ("", "?language=en"):
                page.goto(f"{address}/LICENSES.txt{query}")
                expect(page.locator("pre")).to_contain_text("onnxruntime")
        for path in paths:
            page.goto(f"{address}/{path}?sentence=The+dog+sleeps.&language=en")
            expect(answer).to_have_text(ANSWERED)
        assert site.errors == []
        page.get_by_label("Model", exact=True).select_option("tiny-bert")
        expect(answer).to_have_text(re.compile("^The model could not be loaded: "))
        expect(again).to_be_visible()
        expect(answer).not_to_contain_text("recorded")


def test_one_file_opens_without_a_server(tmp_path, checkpoints_folder, chromium) -> None:
    file = tmp_path / "glassformer.html"
    assert write_single_file(file, [checkpoints_folder / "tiny-bert"]) == file.stat().st_size
    site = Site(file.as_uri(), chromium.new_page(**AT_REST))
    site.page.goto(f"{site.address}?sentence=The+___+sat.&language=en")
    site.is_shown()
    expect(site.page.locator(".answer")).to_have_text(ANSWERED)
    assert site.errors == []
    site.page.close()


def test_the_page_is_used_on_a_phone(site: Site) -> None:
    place = "sentence=The+cat+sat.&stack=decoder&kind=cross&layer=1&head=1&language=en"
    site.open(f"?page=masks&{place}&mask=word+1")  # what only the app has
    page = site.page
    said = page.get_by_text("This link names something that only the app has.").get_by_role("link")  # state.test.js
    expect(said).to_have_attribute("href", re.compile("^http://127.0.0.1:1/[?]page=masks&.*mask=word"))
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
    link = page.locator("footer").get_by_role("link", name="Open in the app")
    expect(link).to_have_attribute("href", re.compile(f"^{begins}"))
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    site.is_shown()
    expect(page.get_by_role("textbox", name="Sentence")).to_have_value("The dog sleeps.")
    expect(page.get_by_role("button", name="Put back").first).to_be_visible()


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
    for size in ({"width": 1280, "height": 720}, PHONE):  # the bar covers nothing
        page.set_viewport_size(size)
        expect(bar).to_be_in_viewport(ratio=1)
        expect(picture).to_be_in_viewport(ratio=1)

        def is_covered() -> bool:
            shown, said = Drawing(page.locator(".figure")).painted()[1], bar.bounding_box()
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


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["en-fr", "gpt-en", "bert-en"])
def test_a_shipped_model_agrees_on_many_sentences(name: str, tmp_path, chromium) -> None:
    folder = CHECKPOINTS / name
    write_site(tmp_path, [folder])
    checkpoint = transformer.load(folder)
    with served(tmp_path) as address:
        site = Site(address, chromium.new_page())
        site.open()
        for sentence in SENTENCES:
            figures_agree(site, checkpoint, sentence, None)
        if name == "en-fr":
            figures_agree(site, checkpoint, "I love you.", "Je t'adore.", "fr")


SENTENCES = (
    "a",
    "I know that you know that I know.",
    "If you want to come with us, you have to be at the station at eight.",
    "Привет means hello in Russian.",
    "Émile’s naïve café — “déjà vu”…",
    "😀 👩‍👩‍👧 🇫🇷",
    "</s> <pad> <s> are no tokens here",
    "  two  spaces   and a\ttab",
    "line\nbreak",
    "日本語の文。",
    "the sea and the sky and " * 19,
)
