"""The app as an installed program: ``pip install .`` provides the library and this command."""

from pathlib import Path

_INSTALLED = Path(__file__).with_name("app")
# The folder of ``app.py``: beside this package in a checkout, inside it in an installation (pyproject.toml).
APP = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).resolve().parents[1]
