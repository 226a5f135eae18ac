"""The documentation works: its Python runs, its links lead somewhere, its paths exist."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(ROOT.glob("docs/*.md")),
    *(ROOT / f / "README.md" for f in ("lessons", "benchmarks", "tests")),
)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)]+)\)")
PATH = re.compile(r"`([\w.-]+/[\w./-]*)`")
NOT_HERE = ("data/", "runs/")  # files that a user may have beside the repository


def anchors(document: Path) -> set[str]:
    """Return the anchors of headings as code hosts make them: lower case, hyphens, no punctuation."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_paths_lead_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for link in LINK.findall(text):
        if link.startswith("http"):
            continue
        name, _, anchor = link.partition("#")
        found = (document.parent / name).resolve() if name else document
        assert found.exists(), f"{document.name} links to {link}"
        assert not anchor or anchor in anchors(found), f"{document.name} links to {link}; there is no such heading"
    top = {path.name for path in ROOT.iterdir()}
    for path in PATH.findall(text):
        if path.split("/")[0] in top and not path.startswith(NOT_HERE):
            assert (ROOT / path).exists(), f"{document.name} names {path}"


def test_security_names_tests_that_exist() -> None:
    table = (ROOT / "SECURITY.md").read_text(encoding="utf-8").partition("## What was tried")[2].partition("\n## ")[0]
    cells = [row.rstrip(" |").rpartition("|")[2] for row in table.splitlines() if row.startswith("|")]
    named = {name for cell in cells for name in re.findall(r"`([\w/]+\.py)`", cell)}
    assert named and not [name for name in sorted(named) if not (ROOT / "tests" / name).exists()]


def test_the_readme_quotes_the_sentence_with_which_the_app_opens() -> None:
    with (ROOT / "checkpoints" / "en-fr" / "opening.toml").open("rb") as file:
        sentence = tomllib.load(file)["opening"]["sentence"]
    assert f'"{sentence}"' in DOCUMENTS[0].read_text(encoding="utf-8")


def what_a_reader_has() -> dict[str, object]:
    """Return what examples about any model assume: a ``transformers`` model, its inputs, one pass."""
    transformers = pytest.importorskip("transformers")
    sizes = {"n_embd": 16, "n_layer": 4, "n_head": 2, "vocab_size": 40, "n_positions": 16, "bos_token_id": 0}
    config = transformers.GPT2Config(**sizes, eos_token_id=0, attn_implementation="eager")
    model, ids = transformers.GPT2LMHeadModel(config).eval(), torch.arange(9)[None]
    cross = tuple(torch.softmax(torch.randn(1, 2, 3, 5), dim=-1) for _ in range(2))
    return {
        "model": model,
        "inputs": {"input_ids": ids},
        "input_ids": ids,
        "tokenizer": SimpleNamespace(convert_ids_to_tokens=lambda ids: [f"Ġ{int(id)}" for id in ids]),
        "outputs": model(input_ids=ids, output_attentions=True),
        "translation": SimpleNamespace(cross_attentions=cross),
        "source_tokens": list("abcde"),
        "target_tokens": list("xyz"),
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "document",
    [d for d in DOCUMENTS if PYTHON.search(d.read_text())],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_every_python_block_runs(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks run in order in one namespace, and in a separate folder, because some write files."""
    (tmp_path / "checkpoints").symlink_to(ROOT / "checkpoints")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = what_a_reader_has()
    for block in PYTHON.findall(document.read_text(encoding="utf-8")):
        exec(compile(block, str(document), "exec"), names)


def test_the_readme_has_python_to_run() -> None:
    assert "transformer.load(" in "".join(PYTHON.findall(DOCUMENTS[0].read_text(encoding="utf-8")))


def test_docstrings_begin_with_a_line_of_at_most_100_characters() -> None:
    packages = ("transformer", "charts", "ui", "glassformer", "tests/harness", "deploy", "benchmarks")
    packages += ("pages", "views", "web", "tests")
    too_long = []
    for path in sorted(path for package in packages for path in (ROOT / package).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                first = (ast.get_docstring(node) or "").partition("\n")[0]
                if len(first) > 100:
                    too_long.append(f"{name}:{node.body[0].lineno}: {first}")
    assert not too_long
