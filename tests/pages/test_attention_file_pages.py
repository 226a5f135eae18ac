"""Pages with a file of attention maps show the maps, or state what the file lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attention_files import KINDS, decoder_arrays, write
from tests.pages.conftest import is_fine, open_path, said
from ui.compute import loading
from ui.shell.navigation import GROUPS
from ui.shell.page import OF_MAPS
from ui.words.texts import common, page_text

_PAGES_OF_NO_MODEL = ("lessons", "by_hand", "desk")
OTHERS = sorted({entry.name for group in GROUPS.values() for entry in group} - {*OF_MAPS, *_PAGES_OF_NO_MODEL})
NOT_COMPUTED = "A file of attention maps has nothing but weights and tokens"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("maps")
    for name, arrays in KINDS.items():
        write(folder / name / "attention.npz", *arrays())
    return folder


@pytest.fixture
def opened(open_app, files: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(files))
    return lambda page, name, **address: open_app(page, checkpoint=name, **address)


@pytest.mark.parametrize("kind", KINDS)
def test_overview_shows_every_head(opened, kind: str) -> None:
    app = opened("overview", kind)
    is_fine(app)
    heads = {"encoder": 8, "decoder": 6, "translator": 20}[kind]
    assert f"{heads} heads in" in said(app)
    assert page_text("overview")["maps_caption"] in said(app)
    assert not [box for box in app.text_area if box.key == "sidebar sentence"]


@pytest.mark.parametrize(
    ("kind", "address"),
    [
        ("decoder", {"layer": "2", "head": "1", "token": "3"}),
        ("encoder", {"attention_show": "lines"}),
        ("translator", {"stack": "decoder", "kind": "cross", "attention_show": "rollout"}),
    ],
    ids=str,
)
def test_attention_shows_the_map_and_then_what_is_missing(opened, kind: str, address: dict[str, str]) -> None:
    app = opened("attention", kind, **address)
    is_fine(app)
    assert [info.value for info in app.info if info.value.startswith(NOT_COMPUTED)]
    assert page_text("attention")["section_reading"] in [heading.value for heading in app.subheader]
    if kind == "decoder":
        assert "Reading **sat**" in said(app)


@pytest.mark.parametrize("kind", KINDS)
def test_heads_finds_roles_in_the_maps(opened, kind: str) -> None:
    app = opened("heads", kind)
    is_fine(app)
    assert "heads have" in said(app) or "head has" in said(app) or "None of" in said(app)
    assert not app.info


def test_checkpoint_lists_the_arrays_and_opens_a_file_by_its_path(
    open_app, opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = opened("checkpoint", "translator")
    is_fine(app)
    assert list(app.dataframe[0].value.iloc[:, 1]) == ["2 × 4 × 6 × 6", "3 × 2 × 5 × 5", "3 × 2 × 5 × 6"]
    monkeypatch.setattr(loading, "_typed", {})
    file = write(tmp_path / "run.safetensors", *decoder_arrays())
    app = open_path(app, file)
    is_fine(app)
    assert app.selectbox(key="sidebar checkpoint").value == "run.safetensors"
    assert list(app.dataframe[0].value.iloc[:, 1]) == ["3 × 2 × 5 × 5"]


@pytest.mark.slow
@pytest.mark.parametrize("page", OTHERS)
def test_every_other_page_says_in_one_line_what_the_file_lacks(opened, page: str) -> None:
    app = opened(page, "decoder")
    is_fine(app)
    start, end = common("maps_only.page", name="decoder", lacking="|").split("|")
    (line,) = [info.value for info in app.info]
    assert line.startswith(start) and line.endswith(end)
