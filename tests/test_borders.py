"""Dependencies between the packages: which may import which, at run time and in the source."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

import transformer

ROOT = Path(__file__).resolve().parents[1]
APP = {"streamlit", "plotly", "altair", "pandas", "charts", "ui", "views", "pages", "app"}
FORBIDDEN = {  # package → packages that it never imports
    "transformer": APP | {"web"},
    "charts": {"torch", "streamlit", "tokenizers", "safetensors", "ui", "views", "pages", "app", "web"},
    "ui": {"views", "pages", "app", "web"},
    "views": {"pages", "app", "web"},
    "web": {"streamlit", "pages", "app"},
    "pages": {"torch", "numpy", "plotly", "altair", "pages", "app"},  # no tensor maths and no drawing in a page
}
DATA_CLASSES = {
    "runs.activation",
    "runs.attention_view",
    "text.tokens",
    "runs.traces",
    "runs.run",
    "config",
    "errors",
    "text.message",
}
LAZY = ROOT / "transformer" / "__init__.py"  # imports by a table of names, each on demand
BY_TABLE = {LAZY}
BESIDE_THE_PAPER = {  # modules that a student reads; everything else of the library is in a package
    *("attention", "embedding", "positions", "feed_forward", "layer_norm", "residual", "encoder", "decoder"),
    *("models", "masks", "config", "probes", "errors", "__init__", "__main__"),
}


def modules_after(*steps: str) -> list[set[str]]:
    """Return the modules that a fresh process has loaded after each step of code."""
    script = "\n".join(f"{code}\nimport sys\nprint('loaded', *sys.modules)" for code in steps)
    result = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-2000:]
    return [set(line.split()[1:]) for line in result.stdout.splitlines() if line.startswith("loaded ")]


def sources(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def imports_of(path: Path) -> frozenset[str]:
    """Return dotted names of all imports, also inside functions and by string.

    Imports for type checkers are left out, because they never run.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            node.body = []
    names = set() if path in BY_TABLE else imports_by_string(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports say where from in full"
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names)


def imports_by_string(tree: ast.AST) -> set[str]:
    """Return the names in ``import_module("…")`` and ``__import__("…")``.

    A name computed at run time is an error, because its imports could not be checked.
    """
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("import_module", "__import__", "find_spec", "run_module"):
                name = node.args[0]
                assert isinstance(name, ast.Constant), f"{ast.unparse(node)} imports what cannot be read here"
                names.add(name.value)
    return names


def graph() -> dict[str, set[str]]:
    """Return which module imports which other one of this project; a package counts as its ``__init__``."""
    modules = {
        module_name(path): path for package in (*FORBIDDEN, "web", "deploy", "benchmarks") for path in sources(package)
    }
    return {name: imports_of(path) & (modules.keys() - {name}) for name, path in modules.items()}


def circle_in(graph: Mapping[str, set[str]]) -> list[str]:
    """Return modules that import each other in a cycle, or nothing."""
    done: set[str] = set()
    way: list[str] = []

    def visit(name: str) -> list[str]:
        if name in way:
            return [*way[way.index(name) :], name]
        if name in done:
            return []
        way.append(name)
        for other in sorted(graph[name]):
            if ring := visit(other):
                return ring
        done.add(way.pop())
        return []

    return next((ring for name in graph if (ring := visit(name))), [])


# ---- at run time ----------------------------------------------------------------------------------------------------


def test_data_classes_and_figures_load_neither_torch_nor_streamlit() -> None:
    data = "import transformer\n" + "\n".join(f"import transformer.{name}" for name in sorted(DATA_CLASSES))
    data += "\ntransformer.AttentionView, transformer.Trace, transformer.ModelConfig"
    names = [module_name(path) for path in sources("charts")]
    assert len(names) > 40
    library, figures = modules_after(data, "\n".join(f"import {name}" for name in names))
    assert "transformer" in library and not library & {"torch", "tokenizers", "safetensors", *APP}
    assert "charts" in figures and not figures & FORBIDDEN["charts"]


@pytest.mark.slow
def test_each_layer_loads_only_what_it_needs() -> None:
    """In one process, as each step would load what an earlier one has not.

    ``transformers`` takes seconds and 100 MB, and torch's compiler a second and hundreds of modules, which nobody needs
    for the models of this project.
    """
    names = "import transformer\n[getattr(transformer, name) for name in transformer.__all__]"
    every = "\n".join(f"import {name}" for name in submodules() if not name.endswith("__main__"))
    own = "transformer.load('checkpoints/vit-digits')"
    start = "from tests.conftest import open_by_address\n"
    pages = "for page in ('overview', 'checkpoint', 'compare'): assert not open_by_address(page, {}).exception\n"
    guest = "transformer.load('tests/golden/guests/llama-like')\n"
    named, library, opened, app, with_guest = modules_after(names, every, own, start + pages, guest)
    assert "torch" in named
    assert not named & {"accelerate", "sacrebleu"}, "only training needs them"
    assert not library & (APP | {"captum", "matplotlib"})
    assert "torch._dynamo" not in opened
    assert "streamlit" in app and "transformers" not in app
    assert "transformers" in with_guest


# ---- in the source --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", FORBIDDEN)
def test_no_source_file_imports_what_its_package_must_not(package: str) -> None:
    """Include imports inside functions, which the tests above do not run."""
    assert sources(package)
    for path in sources(package):
        forbidden = {name for name in imports_of(path) if name.split(".")[0] in FORBIDDEN[package]}
        assert not forbidden, f"{path.relative_to(ROOT)} imports {', '.join(sorted(forbidden))}"


def test_a_view_never_imports_another_page_s_view() -> None:
    for path in sources("views"):
        own = ".".join(path.relative_to(ROOT).parts[:2])
        other = {
            name
            for name in imports_of(path)
            if name.startswith("views.") and not f"{name}.".startswith((f"{own}.", "views.opening_tokens."))
        }
        assert not other, f"{path.relative_to(ROOT)} imports {', '.join(sorted(other))}"


def test_the_figures_take_only_data_classes_from_the_library() -> None:
    allowed = {"transformer", *(f"transformer.{name}" for name in DATA_CLASSES)}
    for path in sources("charts"):
        for name in imports_of(path):
            if name.split(".")[0] == "transformer":
                known = name in allowed or name.rsplit(".", 1)[0] in allowed - {"transformer"}
                assert known, f"{path.relative_to(ROOT)} imports {name}"


def test_the_entry_is_navigation() -> None:
    found = imports_of(ROOT / "app.py")
    others = found - {"transformer.system.offline", "transformer.system.offline.stay_offline"}
    assert {name.split(".")[0] for name in others} <= {"__future__", "streamlit", "ui"}


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Include imports inside functions: a deferred import still closes a cycle."""
    assert not circle_in(graph())


def test_a_circle_is_seen() -> None:
    assert circle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert not circle_in({"a": {"b", "c"}, "b": {"c"}, "c": set()})
    tree = ast.parse("import importlib\ndef late():\n    return importlib.import_module('charts.notebook')")
    assert imports_by_string(tree) == {"charts.notebook"}
    with pytest.raises(AssertionError, match="cannot be read"):
        imports_by_string(ast.parse("importlib.import_module(name)"))


def test_the_lazy_table_names_modules_that_are_there() -> None:
    """``transformer/__init__.py`` imports by a table of strings."""
    there = {name.removeprefix("transformer.") for name in submodules()}
    assert set(transformer._HOME.values()) <= there


def test_editors_know_the_names_that_load_lazily() -> None:
    tree = ast.parse(LAZY.with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    known = {name.asname: node.module for node in imports for name in node.names if name.name == name.asname}
    assert known == {name: f"transformer.{home}" for name, home in transformer._HOME.items()}
    assert sorted(known) == transformer.__all__


# ---- layers ---------------------------------------------------------------------------------------------------------

LAYERED = ("transformer", "ui")


def layers_in_order(package: str) -> list[str]:
    """Return the subpackages of ``package``, lowest first, in the order of ``docs/code.md``.

    "" stands for the root of the package, which is the lowest.
    """
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "docs" / "code.md").read_text(encoding="utf-8"), re.MULTILINE)
    return ["", *(layer for row in rows for layer in re.findall(rf"`{package}/([\w/]+)/`", row))]


def layer_of(module: str, order: Sequence[str]) -> str:
    """Return "text" for "transformer.text.tokens" and "" for "transformer.attention".

    A nested package counts by itself if ``order`` contains it.
    """
    path = f"{'/'.join(module.split('.')[1:])}/"
    return max((layer for layer in order if path.startswith(f"{layer}/")), key=len, default="")


def upward_imports(
    package: str, order: Sequence[str], graph: Mapping[str, set[str]]
) -> dict[tuple[str, str], set[tuple[str, str]]]:
    """Return (layer, layer above it) → the imports (module, module) that lead upwards.

    ``__main__`` may import everything.
    """
    found: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for module, others in graph.items():
        if module.split(".")[0] == package and module != f"{package}.__main__":
            for other in others:
                layers = layer_of(module, order), layer_of(other, order)
                if other.split(".")[0] == package and order.index(layers[0]) < order.index(layers[1]):
                    found.setdefault(layers, set()).add((module, other))
    return found


@pytest.mark.parametrize("package", LAYERED)
def test_packages_are_layers(package: str) -> None:
    """A package imports only packages below it, so no two packages import each other."""
    order = layers_in_order(package)
    there = {path.parent.name for path in (ROOT / package).glob("*/__init__.py")}
    assert sorted(layer for layer in order[1:] if "/" not in layer) == sorted(there), (
        "docs/code.md names every package once"
    )
    assert not upward_imports(package, order, graph())


def test_an_import_upwards_is_seen() -> None:
    below = {"transformer.runs.run": {"transformer.text.tokens", "transformer.config"}}
    assert not upward_imports("transformer", ["", "text", "runs"], below)
    above = {"transformer.config": {"transformer.text.tokens"}, "transformer.__main__": {"transformer.text.tokens"}}
    found = upward_imports("transformer", ["", "text", "runs"], above)
    assert found == {("", "text"): {("transformer.config", "transformer.text.tokens")}}
    inner = {"transformer.text.tokens": {"transformer.text.guests.tokenizer"}}
    assert upward_imports("transformer", ["", "text", "text/guests"], inner).keys() == {("text", "text/guests")}
    assert not upward_imports("transformer", ["", "text"], inner)


def test_tests_import_no_benchmark() -> None:
    """Only their own tests do; code shared by tests and benchmarks is in ``tests/harness/``."""
    others = [path for path in sources("tests") if path.parent != ROOT / "tests" / "benchmarks"]
    assert not [path for path in others if imports_package(path, "benchmarks")]
    shared = sources("tests/harness")
    assert shared and not [path for path in shared if imports_package(path, r"benchmarks|tests\.(?!harness)")]


def imports_package(path: Path, package: str) -> bool:
    """Return whether ``package`` is imported anywhere, including programs that a test runs as text."""
    return bool(re.search(rf"^\s*(?:from|import) (?:{package})\b", path.read_text(encoding="utf-8"), re.MULTILINE))


# ---- folders --------------------------------------------------------------------------------------------------------


def test_beside_the_paper_lies_only_what_is_read_beside_it() -> None:
    assert {path.stem for path in (ROOT / "transformer").glob("*.py")} == BESIDE_THE_PAPER


# ---- names ----------------------------------------------------------------------------------------------------------


def submodules() -> list[str]:
    return [module.name for module in pkgutil.walk_packages(transformer.__path__, "transformer.")]


def test_no_two_modules_bear_one_name() -> None:
    """A newcomer who searches for a name should find one file; a page shares its name with its view."""
    everywhere = [path for package in ("transformer", "charts", "ui", "views") for path in sources(package)]
    files = [path for path in everywhere if path.parts[-3:-1] != ("text", "guests") and path.stem != "__init__"]
    assert not [name for name, count in Counter(path.stem for path in files).items() if count > 1]


def test_no_submodule_bears_the_name_of_something_public() -> None:
    """A module named ``trace`` would replace the function ``transformer.trace`` once it is imported."""
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
