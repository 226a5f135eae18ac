"""Pages of models that read sounds: spectrogram, time, and the reader's own sound."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import transformer
from tests.conftest import open_by_address
from tests.pages.conftest import is_fine
from tests.transformer.guests.tiny_sound_guests import N_BEFORE, sound_checkpoint
from transformer.runs.head_places import Head
from transformer.sounds import sound_files
from transformer.sounds.wav_file import encode_wav
from ui.shell import own_files
from ui.show.sound_view_model import SoundViewModel, spectrogram_of
from ui.words.texts import common

pytest.importorskip("transformers")
PAGES = ("overview", "tokens", "attention")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("sounds")
    sound_checkpoint(made)
    return made


@pytest.fixture(autouse=True)
def _listed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(folder))


def opened(page: str, **address: object) -> AppTest:
    app = open_by_address(page, {"checkpoint": "whisper", **address})
    is_fine(app)
    return app


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_a_sound(page: str) -> None:
    app = opened(page, sentence="sound:sweep")
    assert not app.info and not app.warning, [each.value for each in (*app.info, *app.warning)]
    assert any(
        "spectrogram" in figure.proto.spec or "frequency in Hz" in figure.proto.spec
        for figure in app.get("plotly_chart")
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["encoder self", "decoder self", "decoder cross"])
def test_attention_shows_every_kind_of_it(kind: str) -> None:
    stack, attention = kind.split()
    app = opened("attention", stack=stack, kind=attention, layer=1, head=1, token=5)
    assert not app.info and not app.warning
    over_time = [figure for figure in app.get("plotly_chart") if "frequency in Hz" in figure.proto.spec]
    assert bool(over_time) == (kind != "decoder self")


def test_the_map_has_the_weights_of_the_head_over_time(folder: Path) -> None:
    trace = transformer.trace(transformer.load(folder / "whisper"), "sound:sweep")
    weights = trace.values("decoder.layers.1.cross_attention.weights")[2]
    shown = SoundViewModel(trace, Head("decoder", "cross", 1, 2), row=N_BEFORE - 1)
    assert (shown.covered, shown.step, shown.seconds) == (40, 1, pytest.approx(2.4))
    np.testing.assert_array_equal(shown.shares, weights[:, :40])
    assert shown.silence == pytest.approx(float(weights[N_BEFORE - 1, 40:].sum()), abs=1e-6)
    assert spectrogram_of(trace).shape == (16, 80)
    assert shown.row_labels == trace.prediction.labels


def test_many_positions_share_a_column(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ui.show.sound_view_model.MOST_COLUMNS", 16)
    trace = transformer.trace(transformer.load(folder / "whisper"), "sound:sweep")
    weights = trace.values("encoder.layers.0.self_attention.weights")[0][:, :40]
    shown = SoundViewModel(trace, Head("encoder", "self", 0, 0), row=38)
    assert (shown.step, shown.shares.shape, shown.drawn_row) == (3, (14, 14), 12)
    sums = [weights[:, start : start + 3].sum(axis=1) for start in range(0, 40, 3)]
    expected = np.array([[column[start : min(start + 3, 40)].mean() for column in sums] for start in range(0, 40, 3)])
    np.testing.assert_allclose(shown.shares, expected, rtol=1e-5)
    assert shown.row_labels[:2] == ("0.00 s", "0.18 s") and len(shown.row_labels) == 14


def test_titles_above_a_map_over_time_fit_beside_its_colour_bar() -> None:
    """On a phone, a title has 220 pixels, and the colour bar is in the right half."""
    app = opened("overview", sentence="sound:sweep")
    drawn = next(json.loads(each.proto.spec) for each in app.get("plotly_chart") if "attends" in each.proto.spec)
    titles = [note["text"] for note in drawn["layout"]["annotations"]]
    assert [title.count("<br>") for title in titles] == [1, 1]
    assert all(len(line) < 26 for title in titles for line in re.sub("</?b>", "", title).split("<br>"))
    bar = next(trace["colorbar"] for trace in drawn["data"] if "colorbar" in trace)
    top = drawn["layout"]["yaxis2"]["domain"][1]
    height = drawn["layout"]["height"]
    assert (bar["y"] - top) * height > 36  # the height of two lines


def test_positions_of_a_sound_are_not_swapped_as_words() -> None:
    app = opened("positions", sentence="sound:sweep")
    views = {option.content for group in app.get("button_group") for option in group.proto.options}
    assert "Heatmap" in views and "Another order" not in views


def test_the_sidebar_names_the_heads_of_both_stacks() -> None:
    app = opened("tokens", sentence="sound:sweep")
    assert any("2 layers, 2 + 4 heads" in caption.value for caption in app.sidebar.caption)


def test_an_own_sound_stays_on_every_page_and_the_address_holds_its_hash() -> None:
    app = opened("attention")
    data = encode_wav(0.1 * np.random.default_rng(3).normal(size=8000), 8000)
    text = sound_files.sound_text(data)
    app.session_state["files: own"] = {text: data}
    app.session_state["focus"] = app.session_state["focus"].__class__(checkpoint="whisper", sentence=text)
    app.run()
    is_fine(app)
    assert app.query_params["sentence"] == text and len(text) == 70
    sound_files._files.clear()  # the process has dropped it
    app.run()
    is_fine(app)
    assert app.session_state["focus"].sentence == text and sound_files.is_kept(text)


def test_a_link_to_a_sound_that_is_not_here_opens_with_another_one_and_says_so() -> None:
    app = opened("attention", sentence=f"sound:{'a' * 64}")
    assert app.session_state["focus"].sentence == "sound:melody"
    assert any(common("note.sound_gone")[:40] in caption.value for caption in app.caption)


def test_a_sentence_is_replaced_by_a_sound() -> None:
    app = opened("overview", sentence="The quick brown fox")
    assert app.session_state["focus"].sentence == "sound:melody"


def test_a_file_that_cannot_be_read_leaves_the_sound_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    state: dict[str, object] = {}
    monkeypatch.setattr(own_files.st, "session_state", state)
    assert own_files.take_file(b"A dog barks.", sound_files.sound_text) == ""
    assert "not a WAV file" in own_files.problem()
    texts = [
        own_files.take_file(encode_wav(np.full(100, 0.1 * level), 8000), sound_files.sound_text)
        for level in range(own_files.MOST_OWN + 1)
    ]
    assert list(own_files.own_files(sound_files.PREFIX)) == texts[1:]
    assert not own_files.own_files() and own_files.problem() == ""


@pytest.mark.parametrize(("page", "said"), [("masks", "no_masks"), ("compare", "no_comparison")])
def test_a_page_about_words_or_cells_says_so_in_one_line(page: str, said: str) -> None:
    app = opened(page, stack="decoder", kind="cross")
    assert len(app.info) == 1 and common(f"sound.{said}", count=50)[:40] in app.info[0].value


@pytest.mark.slow
def test_the_mask_of_the_decoder_can_be_drawn() -> None:
    assert not opened("masks", stack="decoder", kind="self").info


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    ["embeddings", "positions", "heads", "add_norm", "feed_forward", "decoding", "surgery", "lens",
     "training", "checkpoint"],
)  # fmt: skip
def test_any_other_page_opens(page: str) -> None:
    opened(page)
