"""Import paths of earlier documentation still work, and name the new path."""

from __future__ import annotations

import importlib
import warnings

import pytest

from transformer.moved import MOVED, RENAMED


@pytest.mark.parametrize("old", MOVED)
def test_an_old_path_gives_the_function_and_names_the_new_path(old: str) -> None:
    module, _, name = f"transformer.{old}".rpartition(".")
    home, _, new = f"transformer.{MOVED[old]}".rpartition(".")
    with pytest.warns(DeprecationWarning, match=f"is now {home}.{new}$") as caught:
        found = getattr(importlib.import_module(module), name)
    assert found is getattr(importlib.import_module(home), new)
    assert caught[0].filename == __file__, "the warning names the line that has to change"


@pytest.mark.parametrize("old", RENAMED)
def test_an_old_name_gives_the_function_and_names_the_new_one(old: str) -> None:
    path, _, name = f"transformer.{old}".rpartition(".")
    module = importlib.import_module(path)
    with pytest.warns(DeprecationWarning, match=f"{name} is now {path}.{RENAMED[old]}$") as caught:
        found = getattr(module, name)
    assert found is getattr(module, RENAMED[old])
    assert caught[0].filename == __file__, "the warning names the line that has to change"


def test_the_lines_of_the_old_readme_still_run() -> None:
    lines = (
        "from transformer.explanation.attention_trust import beside_attention, input_attributions\n"
        "from transformer.analysis.attention.quantity import quantity_of\n"
        "from transformer.explanation import activation_patching as patching\n"
        "patching.contrast\n"
    )
    names: dict[str, object] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec(lines, names)
    assert callable(names["beside_attention"]) and callable(names["quantity_of"])
    new = {str(warning.message).split(" is now ")[1] for warning in caught}
    assert "transformer.attribution.attention_trust.compare_with_attention" in new and len(new) == 4


def test_a_name_that_the_documentation_never_showed_is_not_there() -> None:
    with pytest.raises(ImportError, match="rows_in_a_pass"):
        exec("from transformer.explanation.activation_patching import rows_in_a_pass")
    with pytest.raises(ModuleNotFoundError, match="transformer.explanation.atlas_files"):
        importlib.import_module("transformer.explanation.atlas_files")
