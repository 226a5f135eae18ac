"""The borders between the packages: who may import whom, at run time and in the source."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import transformer

ROOT = Path(__file__).resolve().parents[1]
APP = {"streamlit", "plotly", "altair", "pandas", "charts", "ui", "views", "pages", "app"}
FORBIDDEN = {  # package → what it never imports
    "transformer": APP,
    "charts": {"torch", "streamlit", "tokenizers", "safetensors", "ui", "views", "pages", "app"},
    "ui": {"views", "pages", "app"},
    "views": {"pages", "app"},
    "pages": {"torch", "numpy", "plotly", "altair", "app"},  # no tensor maths and no drawing in a page
}
DATA_CLASSES = {"runs.activation", "runs.attention_view", "text.tokens", "runs.traces", "runs.run", "config", "errors"}


def modules_after(code: str) -> set[str]:
    """The top-level modules that a fresh process has loaded after ``code``."""
    script = f"{code}\nimport sys\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-2000:]
    return set(result.stdout.splitlines()[-1].split())


def sources(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def imports_of(path: Path, *, inside_functions: bool = True) -> set[str]:
    """Dotted names of all imports; those for type checkers only are left out, for they never run."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            node.body = []
        if not inside_functions and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = []
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports say where from in full"
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


# ---- at run time ----------------------------------------------------------------------------------------------------


def test_data_classes_load_no_torch() -> None:
    code = "import transformer\n" + "\n".join(f"import transformer.{name}" for name in sorted(DATA_CLASSES))
    loaded = modules_after(code + "\ntransformer.AttentionView, transformer.Trace, transformer.ModelConfig")
    assert "transformer" in loaded
    assert not loaded & {"torch", "tokenizers", "safetensors", *APP}


def test_the_library_loads_nothing_of_the_app() -> None:
    every = "\n".join(f"import {name}" for name in submodules() if not name.endswith("__main__"))
    loaded = modules_after(f"{every}\nimport transformer\n[getattr(transformer, name) for name in transformer.__all__]")
    assert "torch" in loaded
    assert not loaded & APP


def test_the_figures_load_neither_torch_nor_streamlit() -> None:
    names = [module.name for module in pkgutil.walk_packages([str(ROOT / "charts")], "charts.")]
    assert len(names) > 5
    loaded = modules_after("\n".join(f"import {name}" for name in names))
    assert "charts" in loaded
    assert not loaded & FORBIDDEN["charts"]


def test_decoding_needs_nothing_that_only_training_needs() -> None:
    code = "import transformer\n[getattr(transformer, name) for name in transformer.__all__]"
    assert not modules_after(code) & {"accelerate", "sacrebleu"}


# ---- in the source --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", FORBIDDEN)
def test_no_source_file_imports_what_its_package_must_not(package: str) -> None:
    """Also inside functions, which the tests above do not run."""
    assert sources(package)
    for path in sources(package):
        forbidden = {name for name in imports_of(path) if name.split(".")[0] in FORBIDDEN[package]}
        assert not forbidden, f"{path.relative_to(ROOT)} imports {', '.join(sorted(forbidden))}"


def test_the_figures_take_only_data_classes_from_the_library() -> None:
    allowed = {"transformer", *(f"transformer.{name}" for name in DATA_CLASSES)}
    for path in sources("charts"):
        for name in imports_of(path):
            if name.split(".")[0] == "transformer":
                known = name in allowed or name.rsplit(".", 1)[0] in allowed - {"transformer"}
                assert known, f"{path.relative_to(ROOT)} imports {name}"


def test_the_entry_is_navigation_and_nothing_else() -> None:
    assert {name.split(".")[0] for name in imports_of(ROOT / "app.py")} <= {"__future__", "streamlit", "ui"}


def test_nothing_imports_a_page() -> None:
    for package in ("transformer", "charts", "ui", "views", "pages"):
        for path in sources(package):
            assert not {name for name in imports_of(path) if name.split(".")[0] == "pages"}, path


# ---- names ----------------------------------------------------------------------------------------------------------


def submodules() -> list[str]:
    return [module.name for module in pkgutil.walk_packages(transformer.__path__, "transformer.")]


def test_no_submodule_bears_the_name_of_something_public() -> None:
    """``transformer.trace`` is the function, always: a module of that name would replace it once it is imported."""
    names = {name.split(".")[1] for name in submodules()}
    assert not names & set(transformer.__all__)


def test_all_public_names_are_there_and_documented() -> None:
    assert transformer.__all__ == sorted(transformer.__all__)
    for name in transformer.__all__:
        value = getattr(transformer, name)
        assert value.__doc__, name
        assert value.__name__ == name
        assert value is getattr(importlib.import_module(value.__module__), name)
    assert set(transformer.__all__) <= set(dir(transformer))
    with pytest.raises(AttributeError, match="has no attribute 'tracee'"):
        _ = transformer.tracee


@pytest.mark.parametrize("package", ["transformer", "charts", "ui", "views", "pages"])
def test_files_stay_short_enough_to_read(package: str) -> None:
    long = {path.name: n for path in sources(package) if (n := len(path.read_text().splitlines())) > 300}
    assert not long
