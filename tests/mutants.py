"""Small wrong changes that the tests must notice.

``tests/mutants.toml`` lists them. A change is found by the code that it replaces, wherever that stands; one whose code
stands nowhere, or twice, fails until it is written for the new form. tests/README.md describes the fields.

    python tests/mutants.py                      apply each change, run its tests, expect a failure
    python tests/mutants.py --only NAME …        these changes alone
    python tests/mutants.py --list               their names, and what is wrong with each
    python tests/mutants.py --find               only check that the code of each stands once
    python tests/mutants.py --search NAME PATH … which tests of these paths fail with a change; --first stops at one
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tests" / "mutants.toml"
LAYERS = ("both", "unit", "page")
CODE = tuple(f"{folder}/**/*.py" for folder in ("transformer", "charts", "ui", "views", "pages", "glassformer", "web"))
# With one of these errors, the changed code does not run; nobody has noticed that its result is wrong.
BROKEN = re.compile(r"^E +(SyntaxError|ImportError|ModuleNotFoundError|NameError|UnboundLocalError).*", re.MULTILINE)


class NotFoundError(Exception):
    """The code that a change replaces does not stand exactly once."""


@dataclass(frozen=True)
class Mutant:
    """A small wrong change; tests/README.md describes the fields."""

    name: str
    wrong: str
    code: str
    changed: str
    tests: tuple[str, ...]
    inside: str = ""
    files: tuple[str, ...] = CODE
    layer: str = "both"

    def place(self, root: Path) -> tuple[Path, str]:
        """Return the file that holds the code, and its text after the change.

        Raises:
            NotFoundError: If the code does not stand exactly once in the files.
        """
        parts = self.code.split()
        code, longest = re.compile(r"\s+".join(map(re.escape, parts))), max(parts, key=len)
        found = [
            (path, text[: match.start()] + self.changed + text[match.end() :])
            for path in paths(root, self.files)
            for text in [read(path)]
            if longest in text  # ten times as fast as the pattern
            if (matches := list(code.finditer(text)))
            for first, last in (sections(text, self.inside) if self.inside else [(0, len(text))])
            for match in matches
            if first <= match.start() and match.end() <= last
        ]
        if len(found) != 1:
            raise NotFoundError(
                f"{self.name}: {self.code!r} stands {len(found)} times in {self.inside or ', '.join(self.files)}, not "
                f"once; write this change for the new form of the code, in {TABLE.name}: {self.wrong}"
            )
        return found[0]

    def problems(self, root: Path) -> Iterator[str]:
        """Yield what keeps this change from being tried."""
        try:
            path, text = self.place(root)
            if path.suffix == ".py":
                ast.parse(text)
        except (NotFoundError, SyntaxError) as error:
            yield str(error)
        if not self.tests or self.layer not in LAYERS:
            yield f"{self.name}: name its tests, and one of the layers {', '.join(LAYERS)}"
        for test in self.tests:
            path, _, name = test.partition("[")[0].partition("::")
            if not (root / path).is_file() or f"def {name.rpartition('::')[2]}(" not in read(root / path):
                yield f"{self.name}: there is no test {test}; name one that fails with this change"


@cache
def paths(root: Path, patterns: tuple[str, ...]) -> list[Path]:
    """Return the files of some patterns."""
    return sorted({path for pattern in patterns for path in root.glob(pattern)})


@cache
def read(path: Path) -> str:
    """Return the text of a file, as it was before any change."""
    return path.read_text(encoding="utf-8")


@cache
def sections(text: str, inside: str) -> list[tuple[int, int]]:
    """Return where each definition called ``inside`` begins and ends in a text."""
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    def lines(tree: ast.AST, names: Sequence[str]) -> Iterator[tuple[int, int]]:
        for node in ast.iter_child_nodes(tree):
            if isinstance(node, ast.expr):  # holds no definition
                continue
            if getattr(node, "name", None) != names[0]:
                yield from lines(node, names)
            elif len(names) > 1:
                yield from lines(node, names[1:])
            else:
                yield node.lineno - 1, node.end_lineno

    return [(starts[first], starts[last]) for first, last in lines(ast.parse(text), inside.split("."))]


def mutants() -> dict[str, Mutant]:
    """Return the changes of the table, by name."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return {
        name: Mutant(name, **{key: tuple(value) if isinstance(value, list) else value for key, value in row.items()})
        for name, row in table.items()
    }


@contextmanager
def copied_tree() -> Iterator[Path]:
    """Copy the files that git knows or would add into a folder of its own, and remove it at the end."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder) / "tree"
        for name in names:
            if name and (ROOT / name).is_file():
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, tree / name)
        (tree / ".venv").symlink_to(Path(sys.prefix))
        yield tree


@contextmanager
def applied(change: Mutant, tree: Path) -> Iterator[None]:
    """Apply a change to the copy, and take it back."""
    path, text = change.place(tree)
    before = path.stat()
    path.write_text(text, encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(read(path), encoding="utf-8")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # by which Python knows its compiled file


def run_tests(tree: Path, tests: Sequence[str], *options: str, seconds: float) -> tuple[int, str]:
    """Run tests in the copy; return pytest's exit status (124 after ``seconds``) and what it printed."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", *options, *tests]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    try:
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return 124, f"they still run after {seconds:g} seconds"
    return done.returncode, done.stdout + done.stderr


def verdict(status: int, printed: str) -> str:
    """Return why a change does not count as noticed; "" if a test failed because a result is wrong."""
    if broken := BROKEN.search(printed):
        return f"the changed code does not run: {broken[0]}"
    reasons = {0: "its tests pass", 1: "", 124: printed}
    return reasons.get(status, f"pytest ended with status {status}:\n{printed[-1500:]}")


def run(changes: Sequence[Mutant], seconds: float) -> bool:
    """Run the tests of each change without it and with it; return whether all are noticed."""
    with copied_tree() as tree:
        tests = sorted({test for change in changes for test in change.tests})
        status, printed = run_tests(tree, tests, seconds=seconds * len(changes))
        if status:
            print(f"without any change, these tests fail already:\n{printed[-3000:]}")
            return False
        lives = []
        for change in changes:
            with applied(change, tree):
                why = verdict(*run_tests(tree, change.tests, "-x", seconds=seconds))
            lives += [change.name] if why else []
            print(f"{'LIVES' if why else 'dies '} {change.name} {why}".rstrip(), flush=True)
    print(f"{len(changes) - len(lives)} of {len(changes)} changes are noticed")
    return not lives


def search(change: Mutant, tests: Sequence[str], options: Sequence[str], seconds: float) -> None:
    """Print which tests fail with a change."""
    with copied_tree() as tree, applied(change, tree):
        status, printed = run_tests(tree, tests, "-rfE", *options, seconds=seconds)
    print(verdict(status, printed) or "noticed by:")
    print("\n".join(re.findall(r"^(?:FAILED|ERROR) \S+|^.*\d+ (?:passed|failed).*", printed, re.MULTILINE)))


def main() -> int:
    """Run what the command line asks for; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("--list", "--find", "--first"):
        parser.add_argument(option, action="store_true")
    for option in ("--only", "--search"):
        parser.add_argument(option, nargs="+", default=[])
    parser.add_argument("--seconds", type=float, default=240.0, help="for the tests of one change")
    asked, changes = parser.parse_args(), mutants()
    if unknown := {*asked.only, *asked.search[:1]} - changes.keys():
        parser.error(f"there is no change {', '.join(sorted(unknown))}; --list names them")
    chosen = [changes[name] for name in asked.only or changes]
    if asked.search:
        search(changes[asked.search[0]], asked.search[1:], ["-x"] if asked.first else [], asked.seconds)
    elif asked.list:
        print("\n".join(f"{change.name} ({change.layer}): {change.wrong}" for change in chosen))
    elif found := [problem for change in chosen for problem in change.problems(ROOT)]:
        print("\n".join(found))
        return 1
    elif not asked.find:
        return 0 if run(chosen, asked.seconds) else 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
