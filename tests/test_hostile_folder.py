"""Starting any program of this project in a folder full of hostile Python files runs none of them.

The folder is a checkpoint whose tokenizer is opened in a separate process. Beside its files is one Python file for
every module of Python, of the installed packages and of this project; each would leave a trace.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.conftest import PATIENCE
from tests.foreign_checkpoints import foreign_checkpoint
from tests.harness.app_server import free_port, serving
from transformer.system.import_path import absolute_entries
from transformer.system.python_process import start_python

ROOT = Path(__file__).resolve().parents[1]
OURS = ("transformer", "glassformer", "charts", "ui", "views", "pages", "deploy", "benchmarks", "app")
SETTINGS = '[server]\nallowedHosts = ["*"]\nenableXsrfProtection = false\nport = 8999\n'
# Like the script that pip writes for the command: it has no current folder in sys.path.
COMMAND = "import sys; from glassformer.__main__ import main; sys.argv[0] = 'glassformer'; sys.exit(main())"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = foreign_checkpoint("hf-llama", tmp_path_factory.mktemp("downloads"))
    names = {*sys.stdlib_module_names, *packages_distributions(), "sitecustomize", "usercustomize", *OURS}
    code = f"open({str(path / 'marks')!r}, 'a').write(__name__ + '\\n')\n"
    for name in names:
        if name.isidentifier():
            (path / f"{name}.py").write_text(code)
    (path / ".streamlit").mkdir()
    (path / ".streamlit" / "config.toml").write_text(SETTINGS)
    return path


@pytest.fixture(autouse=True)
def _no_mark_is_left(folder: Path) -> Iterator[None]:
    yield
    marks = folder / "marks"
    found = marks.read_text().split() if marks.exists() else []
    marks.unlink(missing_ok=True)
    assert not found, f"files of the current folder ran: {', '.join(found)}"


def run(folder: Path, *arguments: str, **variables: str) -> str:
    """Return the output of a Python process that is started in ``folder`` as a user would start it."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=3 * PATIENCE)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_the_files_would_leave_marks(folder: Path) -> None:
    run(folder, "-c", "import json, tokenizers")
    marks = folder / "marks"
    assert marks.read_text().split() == ["json", "tokenizers"]
    marks.unlink()


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("transformer", "inspect", "."), ("deploy.serve", "--help")], ids=" ".join)
def test_python_m(folder: Path, arguments: tuple[str, ...]) -> None:
    """Python puts the current folder first on its path, so the package comes from there (SECURITY.md).

    Nothing else may come from there.
    """
    loaded = run(folder, "-P", "-c", "import runpy, sys; print(*{name.split('.')[0] for name in sys.modules})").split()
    before_us = {*loaded, "transformer", arguments[0].split(".")[0]}
    first = {path.name: path.read_text() for path in folder.glob("*.py") if path.stem in before_us}
    for name in first:
        (folder / name).unlink()
    try:
        assert run(folder, "-m", *arguments)
        assert not (folder / "marks").exists()
    finally:
        for name, content in first.items():
            (folder / name).write_text(content)


# What each program does, in one process: what one has loaded safely is not loaded again by another.
PROGRAMS = f"""
import os, sys
import transformer
print("the library opens the folder:", transformer.load(".").tokenizer.encode("The cat sat"))
from transformer.__main__ import main
assert main(["inspect", "."]) == 0
from glassformer.__main__ import main
for arguments in ("--help",), ("web", "--help"):
    sys.argv = ["glassformer", *arguments]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code
from deploy.serve import application
from ui.server.streamlit_private import config
application()
print(*(config.get_option(f"server.{{name}}") for name in ("allowedHosts", "enableXsrfProtection", "port")))
os.environ["GLASSFORMER_CHECKPOINTS"] = os.path.dirname(os.getcwd())
from streamlit.testing.v1 import AppTest
app = AppTest.from_file({str(ROOT / "app.py")!r}, default_timeout={PATIENCE})
app.query_params["checkpoint"] = os.path.basename(os.getcwd())
app.run()
assert not app.exception, app.exception
print("the app opens", [box.value for box in app.sidebar.selectbox])
"""
PRINTED = (
    "the library opens the folder: [",
    "usage: glassformer",
    "FOLDER",
    "['localhost', '127.0.0.1', '::1'] True 8501",  # our server does not read the settings of the folder
    "the app opens ['hf-llama'",
)


@pytest.mark.slow
def test_programs_with_a_safe_path_need_no_exception(folder: Path) -> None:
    printed = run(folder, "-P", "-c", PROGRAMS)
    assert [words for words in PRINTED if words not in printed] == []


@pytest.mark.slow
@pytest.mark.sample("command")
@pytest.mark.parametrize("command", ["glassformer", "streamlit run"])
def test_a_server_started_there(folder: Path, command: str) -> None:
    port = free_port()
    if command == "glassformer":
        arguments = ["-P", "-c", COMMAND, "--port", port]
    else:
        script = Path(sysconfig.get_path("scripts"), "streamlit")
        arguments = [script, "run", ROOT / "app.py", "--server.port", port]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with serving([sys.executable, *arguments], port, folder / "server.log", cwd=folder, env=environment) as fetch:
        assert fetch("/_stcore/health") == b"ok"
        assert b"<title>" in fetch("/attention")


def test_a_python_process_of_ours_takes_only_absolute_entries(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", ".", "lib", str(ROOT / "tests"), ""]))
    code = "import json, os, sys, transformer; print(json.dumps([os.getcwd(), *sys.path]))"
    process = start_python("-c", code, stdout=subprocess.PIPE, text=True)
    printed = process.communicate(timeout=60)[0]
    assert str(folder) not in printed and '"."' not in printed and '""' not in printed
    assert str(ROOT / "tests") in printed and process.returncode == 0


def test_absolute_entries() -> None:
    given = os.pathsep.join(["", "/lib", "relative", ".", "/other", ""])
    assert absolute_entries(given) == ["/lib", "/other"]


def test_python_processes_are_started_in_one_place() -> None:
    """Code that starts processes elsewhere would have to take all these precautions again."""
    packages = ("transformer", "glassformer", "charts", "ui", "views", "pages", "deploy", "benchmarks")
    starting = {
        str(path.relative_to(ROOT))
        for package in packages
        for path in (ROOT / package).rglob("*.py")
        if any(call in path.read_text(encoding="utf-8") for call in ("sys.executable", "os.system", "subprocess.run("))
        or "subprocess.Popen(" in path.read_text(encoding="utf-8")
    }
    assert starting == {"transformer/system/python_process.py"}
