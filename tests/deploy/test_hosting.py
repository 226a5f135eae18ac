"""The files for a Space of Hugging Face and the entry for Streamlit Community Cloud."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from streamlit.testing.v1 import AppTest

from deploy.space.__main__ import ARGUMENTS, CARD, main
from tests.pages.conftest import is_fine

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("space") / "new"
    main([str(folder)])
    return folder


def test_the_card_has_what_hugging_face_asks_for(space: Path) -> None:
    _, front, text = (space / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    card = yaml.safe_load(front)
    assert card["sdk"] == "docker" and card["app_port"] == int(ARGUMENTS["PORT"]) == 7860
    assert card["title"] and len(card["short_description"]) <= 60  # Hugging Face's limit
    assert text.strip().startswith("# Glassformer")


def test_the_dockerfile_is_that_of_deploy_with_other_arguments(space: Path) -> None:
    ours = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8").splitlines()
    theirs = (space / "Dockerfile").read_text(encoding="utf-8").splitlines()
    changed = [new for old, new in zip(ours, theirs, strict=True) if old != new]
    assert changed == ["ARG UID=1000", "ARG PORT=7860", "ARG PUBLIC=1"]


def test_everything_that_is_copied_is_there_and_nothing_else(space: Path) -> None:
    copied = re.findall(r"^COPY (\S+)", (space / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert all(list(space.glob(name)) for name in copied)
    tops = {name.split("/")[0] for name in copied}
    assert {path.name for path in space.iterdir()} == tops | {"Dockerfile", "README.md"}
    assert not list(space.rglob("__pycache__"))


def test_a_folder_with_something_in_it_is_left_alone(space: Path, capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit):
        main([str(space)])
    assert "is not empty; name a new folder" in capsys.readouterr().err
    assert (space / "README.md").read_bytes() == CARD.read_bytes()


def test_the_entry_of_community_cloud_is_the_app_as_a_public_server(
    checkpoints_folder: Path, public_server: None
) -> None:
    app = AppTest.from_file(str(ROOT / "deploy" / "community_cloud" / "streamlit_app.py"), default_timeout=120).run()
    is_fine(app)
    assert app.title[0].value == "Overview"
    entry = (ROOT / "deploy" / "community_cloud" / "streamlit_app.py").read_text(encoding="utf-8")
    assert entry.index('setdefault("GLASSFORMER_PUBLIC", "1")') < entry.index("run_path")
    requirements = (ROOT / "deploy" / "community_cloud" / "requirements.txt").read_text(encoding="utf-8")
    assert "whl/cpu" in requirements and "-r ../../requirements.in" in requirements
