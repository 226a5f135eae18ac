"""The only module of this project that starts Python processes."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transformer.system.import_path import absolute_entries

LIBRARY = Path(__file__).resolve().parents[2]  # the folder that contains the package ``transformer``


def start_python(
    *arguments: str,
    cwd: Path = LIBRARY,
    environment: Mapping[str, str] | None = None,
    **streams: Any,
) -> subprocess.Popen:
    """Start a Python process that imports this library and nothing from the user's current folder.

    ``-P`` keeps the current folder and the script's folder out of ``sys.path``; only absolute entries of ``PYTHONPATH``
    are passed on, after the folder of this library.

    Args:
        arguments: Arguments of the interpreter, such as ``"-m", "transformer", "inspect", "models/en-fr"``.
        cwd: Current folder of the process.
        environment: Variables to set in addition to those of this process.
        streams: ``stdin``, ``stdout`` and other arguments of ``subprocess.Popen``.
    """
    variables = {**os.environ, **(environment or {})}
    variables["PYTHONPATH"] = os.pathsep.join([str(LIBRARY), *absolute_entries(variables.get("PYTHONPATH", ""))])
    command: Sequence[str] = [sys.executable, "-P", *arguments]
    return subprocess.Popen(command, cwd=cwd, env=variables, **streams)
