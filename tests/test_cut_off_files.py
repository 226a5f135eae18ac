"""Commands killed while writing a file never leave it under its final name; the next run works."""

from __future__ import annotations

import os
import resource
import signal
import stat
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

import transformer
from glassformer.notebook import attention_map
from transformer.disk.whole_files import atomic_path, write_text

SENTENCE = "The cat sat on the mat."


def killed_after(n_bytes: int | None, write: Callable[[], object]) -> int:
    """Run ``write`` in a process killed once a file reaches ``n_bytes``; return the exit status."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        if n_bytes is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it
            resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))
        write()
        os._exit(0)
    finally:
        os._exit(99)


def files_in(folder: Path) -> dict[str, int]:
    """Return the size of each file by its name; files of one run and of the next one have the same."""
    return {str(file.relative_to(folder)): file.stat().st_size for file in folder.rglob("*") if file.is_file()}


def final(files: dict[str, int]) -> dict[str, int]:
    return {name: size for name, size in files.items() if ".unfinished" not in name}


def write_site(out: Path, model: Path) -> None:
    from web import site  # only here, because importing the exporter takes seconds

    # the graphs are not exported
    site.graphs_of = lambda *_: [SimpleNamespace(stack="decoder", onnx=bytes(9), inputs=[], outputs=[])]
    site.write_site(out, [model])


def write_figure(out: Path, model: Path) -> None:
    out.mkdir(exist_ok=True)
    view = transformer.trace(transformer.load(model), SENTENCE).attention("decoder", 0)
    attention_map(view, head=0).save(out / "map.html")


def write_trace(out: Path, model: Path) -> None:
    transformer.save_trace(transformer.trace(transformer.load(model), SENTENCE), out / "a.trace")


WRITERS: dict[str, Callable[[Path, Path], None]] = {
    "web": write_site,
    "figure": write_figure,
    "trace": write_trace,
}


@pytest.fixture(scope="module")
def imported() -> None:
    """Import once what each process would import again."""
    import_module("web.site")


@pytest.mark.slow
@pytest.mark.usefixtures("imported")
@pytest.mark.parametrize("writer", WRITERS)
def test_a_killed_command_leaves_no_half_file_and_works_again(
    writer: str, checkpoints_folder: Path, tmp_path: Path
) -> None:
    model = checkpoints_folder / "tiny-gpt"

    def write(out: Path) -> Callable[[], None]:
        return lambda: WRITERS[writer](out, model)

    assert killed_after(None, write(tmp_path / "whole")) == 0
    whole = files_in(tmp_path / "whole")
    sizes = sorted(whole.values())
    for number, size in enumerate({sizes[0], sizes[len(sizes) // 2], sizes[-1]}):
        out = tmp_path / str(number)
        assert killed_after(size // 2, write(out)) == -signal.SIGXFSZ
        left = files_in(out)
        assert final(left).items() <= whole.items(), "a half-written file has a final name"
        assert killed_after(None, write(out)) == 0
        assert files_in(out) == whole


def test_a_link_stays_one_and_a_pipe_receives_the_text(tmp_path: Path) -> None:
    """``--out /dev/stdout`` would otherwise put a file in its place."""
    (tmp_path / "there").mkdir()
    link, pipe = tmp_path / "link.txt", tmp_path / "pipe"
    link.symlink_to(tmp_path / "there" / "file.txt")
    write_text(link, "first")
    write_text(link, "second")
    assert link.is_symlink() and (tmp_path / "there" / "file.txt").read_text() == "second"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_text(pipe, "through the pipe")
    assert os.read(reader, 99) == b"through the pipe" and stat.S_ISFIFO(pipe.stat().st_mode)
    os.close(reader)
    assert sorted(os.listdir(tmp_path)) == ["link.txt", "pipe", "there"]


def test_two_that_write_one_file_leave_each_other_alone(tmp_path: Path) -> None:
    file = tmp_path / "file"
    with atomic_path(file) as slow:
        slow.write_text("begun first, finished last")
        write_text(file, "begun last, finished first")
        assert file.read_text() == "begun last, finished first"
    assert file.read_text() == "begun first, finished last"
    assert os.listdir(tmp_path) == ["file"]
