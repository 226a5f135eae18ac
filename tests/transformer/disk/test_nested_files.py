"""Recipes and openings that are nested too deeply for a parser are refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from transformer.files.opening_file import read_opening
from transformer.training.recipe import load_recipe

DEEP = "a = " + "[" * 5000 + "]" * 5000


def test_a_deep_recipe_is_refused(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text(DEEP)
    with pytest.raises(ValueError, match=r"recipe\.toml is not valid TOML: its values are nested too deeply"):
        load_recipe(tmp_path / "recipe.toml")


def test_a_deep_opening_is_refused(tmp_path: Path) -> None:
    (tmp_path / "opening.toml").write_text(DEEP)
    with pytest.raises(ValueError, match=r"opening\.toml is not valid TOML: its values are nested too deeply"):
        read_opening(tmp_path)
