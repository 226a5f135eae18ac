"""One walk: every view × model is opened once, texts are typed into it, and all observers look.

Every run walks each view with one of a few models that the day draws (``tests/nights.py``), because a model takes
longer to make and open than a view; nightly runs walk all of it.
"""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import TextArea, TextInput

import transformer
from tests.conftest import ROOT
from tests.foreign_checkpoints import FOREIGN, any_checkpoint
from tests.kinds_of_text import SENDABLE, UNREADABLE
from tests.long_texts import long_sentence
from tests.nights import DAY
from tests.pages.conftest import KINDS
from tests.pages.fuzzing import PAGES, elements, is_sound
from tests.pages.page_views import SIDEBAR, TRANSLATOR, VIEWS, WRITERS, View
from tests.shipped import SHIPPED
from tests.transformer.guests import tiny_guests, tiny_image_guests
from tests.transformer.guests.test_sentence_encoders import saved
from transformer.errors import InputError, NotFiniteError
from ui.compute.loading import load_checkpoint
from ui.shell.navigation import NO_SENTENCE, page_names
from ui.words.texts import common

FIRST = "The old man told us a story."
LIMIT = 96  # tokens that a tiny model reads; those that ship read more
ENCODERS = (*tiny_guests.ENCODERS, "headless", "hf-bert", "hf-bert-classes", "bert-en", "sentiment")
ENCODERS += ("tiny-bert", "tiny-sentiment", "huge-bert", "huge-sentiment")
OURS = ("tiny-translator", "huge-translator", "en-fr", "en-fr-sharp", "t5-small-tasks")
TWO_STACKS = (*tiny_guests.WRITERS, "hf-t5", "hf-marian", *OURS)
UNBOUNDED = ("hf-t5", "mt5")  # translate what is too long for others, which takes half a minute per page


@dataclass(frozen=True)
class Model:
    """A checkpoint that the walk opens.

    Attributes:
        write: Writes the checkpoint below a folder; ``None`` if it is there.
    """

    name: str
    write: Callable[[str, Path], object] | None = None

    @property
    def reads_images(self) -> bool:
        return self.name in tiny_image_guests.IMAGE_GUESTS or self.name == "vit-digits"


def headless(name: str, folder: Path) -> None:
    """Write an encoder without an output head, as models of sentences are."""
    (folder / name).mkdir()
    saved(folder / name)


def write_huge(tiny: Path, folder: Path) -> None:
    """Copy a checkpoint with weights × 10³⁰: each is finite, their products are not."""
    path = shutil.copytree(tiny, folder) / "model.safetensors"
    save_file({name: tensor.float() * 1e30 for name, tensor in load_file(path).items()}, path)


MODELS = (
    Model("headless", headless),
    *(Model(f"{size}-{kind}") for size in ("tiny", "huge") for kind in ("translator", "gpt", "bert", "sentiment")),
    *(Model(path.name) for path in SHIPPED),
    *(Model(name, any_checkpoint) for name in (*FOREIGN, *tiny_guests.GUESTS, *tiny_image_guests.IMAGE_GUESTS)),
)


def models_of(view: View) -> list[Model]:
    """Return the models that a view is about: with two stacks, with a decoder, or all."""
    if view.kinds == TRANSLATOR:
        return [model for model in MODELS if model.name in TWO_STACKS]
    return [
        model
        for model in MODELS
        if not (view.kinds == WRITERS and (model.name in ENCODERS or model.reads_images))
        and not (view.box != SIDEBAR and (model.reads_images or model.name.startswith("huge-")))
    ]


CASES = [pytest.param(view, model, id=f"{view.name}, {model.name}") for view in VIEWS for model in models_of(view)]


def texts_of(view: View, model: Model) -> dict[str, str]:
    """Return the texts to type: a readable one and an unreadable one, drawn by the day, and a long one.

    The long one is typed only into tiny models, of which it is the longest that they read.
    """
    draw = random.Random(f"{DAY} {view.name} {model.name}")
    readable = [name for name in SENDABLE if name not in UNREADABLE]
    is_slow = model.name in UNBOUNDED and view.page != "overview"
    unreadable = [name for name in UNREADABLE if not (is_slow and SENDABLE[name].strip())]
    texts = {name: SENDABLE[name] for name in (draw.choice(readable), draw.choice(unreadable))}
    if model.name.startswith("tiny-"):
        texts["long"] = long_sentence(load_checkpoint(model.name), LIMIT)
    return texts


@dataclass
class Shown:
    """What is on the screen after a text was typed.

    Attributes:
        reason: Why the library does not read the text; empty if it does.
        runs: How often the page has run for it.
        typed: Whether the text was typed, not in the address.
        is_long: Whether it has as many tokens as a tiny model reads.
    """

    view: View
    model: Model
    app: AppTest
    text: str
    runs: int
    reason: str = ""
    typed: bool = True
    is_long: bool = False


def is_free_of_errors(shown: Shown) -> None:
    is_sound(shown.app)
    assert not shown.app.error, [error.value for error in shown.app.error]


def draws_or_says_why(shown: Shown) -> None:
    kinds = ("plotly_chart", "vega_lite_chart", "bidi_component", "metric", "info", "warning", "dataframe")
    found = [one for kind in kinds for one in shown.app.get(kind)]
    assert [one for one in found if getattr(getattr(one, "proto", None), "component_name", "") not in FRAME]


FRAME = {"glassformer_canvas_script", "glassformer_frame"}  # components that every page has; they draw nothing


def is_drawn_once(shown: Shown) -> None:
    assert shown.runs == 1, f"the page has run {shown.runs} times"


def keeps_what_was_typed(shown: Shown) -> None:
    if shown.typed:
        assert box_of(shown.app, shown.view).value == shown.text


def refuses_in_one_sentence(shown: Shown) -> None:
    if shown.reason and shown.view.refuses:
        reason = shown.reason if shown.text.strip() else shown.view.nothing or shown.reason
        lines = [one.value.replace("\\", "").replace(":color[]{}", "") for one in (*shown.app.warning, *shown.app.info)]
        if not any(line.startswith(f"{shown.model.name} is ") for line in lines):  # it shows nothing of this model
            assert sum(reason in line for line in lines) == 1, (reason, lines)


def reads_a_long_text(shown: Shown) -> None:
    if shown.is_long and "compare_mode" not in shown.view.address:  # where other models read it, too
        assert not shown.reason and not shown.app.warning, [warning.value for warning in shown.app.warning]


def shows_what_the_view_is_about(shown: Shown) -> None:
    if not shown.reason and shown.model.name in shown.view.kinds:  # other tokenizers may know no such characters
        shown.view.check(shown.app, shown.text)


def loads_nothing_from_elsewhere(shown: Shown) -> None:
    texts = [str(one.value) for one in (*shown.app.markdown, *shown.app.caption)]
    assert not [text for text in texts if re.search(r"(?<!\\)!\[|(?<!\\)<img|(?<!\\)<script", text)]


def shows_of_a_guest_what_the_documentation_says(shown: Shown) -> None:
    """Each page of the table opens as it is; a letter stands for the sentence about what it does not show."""
    if shown.typed or (shown.model.name, shown.view.page) not in guest_table() or shown.view not in first_views():
        return
    told = [info.value.replace("\\", "") for info in shown.app.info]
    nothing = common("problem.no_image_words").format(name=shown.model.name).split(". ")[0]
    missing = [line.removeprefix(NOT_SHOWN) for line in told if line.startswith(NOT_SHOWN)]
    missing += [
        "anything, because it" + nothing.removeprefix(shown.model.name) + "." for line in told if nothing in line
    ]
    if common("problem.needs_text", name=shown.model.name) in told:
        missing += ["anything, because the page needs a model that reads text."]
    assert missing == guest_table()[shown.model.name, shown.view.page]


NOT_SHOWN = "This model is computed by the code of transformers, which does not expose "


def first_views() -> list[View]:
    """Return the view with which each page about a model opens, in the order of the documentation."""
    shown = [view for view in VIEWS if view.box == SIDEBAR and len(view.kinds) > 1]
    first = {view.page: view for view in reversed(shown) if view.page not in ("lessons", "by_hand")}
    return [view for view in shown if first.get(view.page) is view]


@cache
def guest_table() -> dict[tuple[str, str], list[str]]:
    """Return what docs/guests.md says that a page does not show of a guest, by guest and page."""
    text = (ROOT / "docs" / "guests.md").read_text(encoding="utf-8")
    letters = dict(re.findall(r"^- (\w): (.+)$", text, re.MULTILINE))
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    pages = [name.replace(" ", "_") for name in rows[0][1:]]
    return {
        (guest, page): [letters[cell]] if cell in letters else []
        for guest, *cells in rows[1:]
        for page, cell in zip(pages, cells, strict=True)
    }


def is_short(shown: Shown) -> None:
    assert sum(len(str(getattr(one, "value", ""))) for one in elements(shown.app)) < 200_000


OBSERVERS = (
    is_free_of_errors,
    draws_or_says_why,
    is_drawn_once,
    keeps_what_was_typed,
    refuses_in_one_sentence,
    reads_a_long_text,
    shows_what_the_view_is_about,
    loads_nothing_from_elsewhere,
    shows_of_a_guest_what_the_documentation_says,
    is_short,
)


def box_of(app: AppTest, view: View) -> TextArea | TextInput:
    return next(box for box in (*app.text_area, *app.text_input) if box.key == view.box)


def observed(shown: Shown, name: str) -> list[str]:
    """Return what the observers found wrong."""
    wrong = []
    for observe in OBSERVERS:
        try:
            observe(shown)
        except AssertionError as error:
            wrong.append(f"{name}: {observe.__name__}: {error}")
    return wrong


@pytest.fixture(scope="session")
def world(checkpoints_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Model], Path]:
    """Return ``world(model)``, the folder of a model, written when it is first asked for."""
    made = tmp_path_factory.mktemp("world")

    @cache
    def folder_of(model: Model) -> Path:
        if model.name.startswith("huge-"):
            write_huge(checkpoints_folder / model.name.replace("huge", "tiny"), made / model.name)
            return made / model.name
        if model.write:
            model.write(model.name, made)
            return made / model.name
        return (checkpoints_folder if model.name.startswith("tiny-") else SHIPPED[0].parent) / model.name

    return folder_of


@cache
def refusal(model: Model, text: str) -> str:
    """Return why the library does not read a text; empty if it does. The app must find the model."""
    try:
        transformer.trace(load_checkpoint(model.name), text).check_finite()
    except (InputError, NotFiniteError) as error:
        return str(error)
    return ""


@pytest.mark.slow
@pytest.mark.sample("model", values=8)
@pytest.mark.parametrize(("view", "model"), CASES)
def test_a_view(open_app, world, frames, monkeypatch, view, model) -> None:
    """Texts are typed one after the other on one page, so that leftovers of one would show in the next."""
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(world(model).parent))
    address = {} if model.reads_images else {"sentence": FIRST}
    app = open_app(view.page, checkpoint=model.name, **address, **view.address)
    wrong = observed(Shown(view, model, app, FIRST, len(frames), typed=False), "opened")
    for name, text in texts_of(view, model).items() if types_into(view, model) else ():
        frames.clear()
        box_of(app, view).set_value(text).run()
        shown = Shown(view, model, app, text, len(frames), refusal(model, text), is_long=name == "long")
        wrong += observed(shown, name)
    assert not wrong, "\n".join(wrong)


def types_into(view: View, model: Model) -> bool:
    return not model.reads_images and (view.box != SIDEBAR or view.page not in NO_SENTENCE)


@pytest.mark.parametrize("checkpoint", KINDS)
def test_the_long_text_fills_a_tiny_model(tiny_checkpoint, checkpoint: str) -> None:
    loaded = tiny_checkpoint(checkpoint)
    trace = transformer.trace(loaded, long_sentence(loaded, LIMIT))
    assert len(trace.tokens(trace.stacks[0])) == LIMIT - (checkpoint == "tiny-gpt")
    assert loaded.config.max_length == LIMIT


def test_every_page_and_every_model_is_walked() -> None:
    assert {view.page for view in VIEWS} == set(PAGES) == set(page_names())
    assert {case.values[1] for case in CASES} == set(MODELS)


def test_the_table_of_the_documentation_has_every_guest_and_every_page() -> None:
    kinds = (*tiny_guests.GUESTS, *tiny_image_guests.IMAGE_GUESTS)
    assert [*guest_table()] == [(kind, view.page) for kind in kinds for view in first_views()]
    text = (ROOT / "docs" / "guests.md").read_text(encoding="utf-8")
    assert f"of {len(kinds)} model types, {len(tiny_image_guests.IMAGE_GUESTS)} of which read images" in text
