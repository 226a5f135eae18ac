"""``fetch`` from a local hub that may lie, break off or never end: consent first, and no wrong file."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import transformer
from transformer.__main__ import main
from transformer.files import fetch as fetch_files

hub = pytest.importorskip("huggingface_hub")
COMMIT = "0" * 40


class Hub(ThreadingHTTPServer):
    """A hub that announces ``files`` by name, and does ``how`` instead of sending a file correctly."""

    daemon_threads = True
    files: dict[str, bytes]
    how: str = ""
    sent = 0

    class RequestHandlerClass(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        server: Hub

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def _answer(self, *, body: bool) -> None:
            path = self.path.split("?")[0]
            if self.server.how == "gone":
                return self._send(b"", {}, body=False, status=404)
            if path.startswith("/api/models/"):
                return self._send(json.dumps(self.server.described()).encode(), {}, body=body)
            name = path.rsplit("/", 1)[-1]
            content = self.server.files[name]
            if self.server.how == "redirects" and path.startswith("/me/"):
                headers = {"Location": f"/stored/{name}", **self.server.headers(content)}
                return self._send(b"", headers, body=False, status=302)
            if self.server.how == "leads to a file" and name == "model.safetensors":
                return self._send(b"", {"Location": "file:///etc/passwd"}, body=False, status=302)
            if self.server.how == "circles":
                return self._send(b"", {"Location": self.path}, body=False, status=302)
            if body and name == "model.safetensors":
                if self.server.how == "another file":
                    content = bytes(len(content))
                if self.server.how == "is shorter":
                    return self._send(content[:-9], {}, body=True)
                if self.server.how == "is longer":
                    return self._send(content + bytes(9), {}, body=True)
                if self.server.how == "breaks off":
                    return self._break_off(content)
                if self.server.how == "grows":
                    return self._grow()
            self._send(content, self.server.headers(self.server.files[name]), body=body)

        def _send(self, content: bytes, headers: dict[str, str], *, body: bool, status: int = 200) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if body:
                self.wfile.write(content)

        def _break_off(self, content: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.close_connection = True
            self.wfile.write(content[:1])
            self.server.sent += 1
            if self.server.sent > 3:
                self.server.how = "gone"  # the hub stops at last, because the client waits anew after each byte
                self.server.files = {}

        def _grow(self) -> None:
            """Send a file without an end, in chunks without an announced number."""
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.close_connection = True
            piece = bytes(1 << 20)
            try:
                while self.server.sent < 500:
                    self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                    self.server.sent += 1
            except OSError:
                return  # the reader has disconnected

        def log_message(self, *_: object) -> None:
            """Handle a request without logging it."""

    def headers(self, content: bytes) -> dict[str, str]:
        return {"ETag": f'"{hashlib.sha1(content).hexdigest()}"', "X-Repo-Commit": COMMIT,
                "X-Linked-Size": str(len(content)), "Content-Type": "application/octet-stream"}  # fmt: skip

    def described(self) -> dict:
        siblings = []
        for name, content in self.files.items():
            said = {"rfilename": name, "size": len(content), "blobId": _git_name(content)}
            if name.endswith(".safetensors"):
                digest = hashlib.sha256(content).hexdigest()
                said["lfs"] = {"sha256": digest, "size": len(content), "pointerSize": 130}
            siblings.append(said)
        return {"_id": "1", "id": "me/mine", "modelId": "me/mine", "sha": COMMIT, "siblings": siblings,
                "private": False, "tags": [], "downloads": 0, "likes": 0}  # fmt: skip


def _git_name(content: bytes) -> str:
    return hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()


def files_of(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture
def loopback(checkpoints_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with a checkpoint of this project, which opens in milliseconds after it was fetched."""
    with Hub(("127.0.0.1", 0), Hub.RequestHandlerClass) as server:
        server.files = files_of(checkpoints_folder / "tiny-gpt")
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
        yield server
        server.shutdown()


def fetched(folder: Path) -> set[str]:
    """Return all files below ``folder`` that are in their final location."""
    places = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {str(path) for path in places if ".unfinished" not in path.parts}


HUBS = {  # what a hub does: a word of what is said, or ``None`` if it is fetched
    "": None,
    "redirects": None,
    "another file": "model.safetensors is not what me/mine says it is",
    "grows": "bytes that were announced",
    "circles": "cannot be fetched",
    "leads to a file": "cannot be fetched",
    "is shorter": "me/mine",
    "is longer": "me/mine",
    "breaks off": "cannot be fetched",
}


@pytest.mark.slow
@pytest.mark.parametrize("how", HUBS)
def test_a_hub_that_does_something_else_than_it_says(
    loopback: Hub, tmp_path: Path, capsys: pytest.CaptureFixture, how: str
) -> None:
    loopback.how = how
    ended, there = main(["fetch", "me/mine", "--yes", "--output", str(tmp_path / "out")]), fetched(tmp_path / "out")
    printed = capsys.readouterr()
    if HUBS[how] is None:
        assert ended == 0 and there == {f"mine/{name}" for name in loopback.files}
        assert f"{tmp_path / 'out' / 'mine'}  " in printed.out
        return
    said = [line for line in printed.err.splitlines() if "me/mine" in line][-1]
    assert ended == 2 and HUBS[how] in said and "Traceback" not in said
    assert "mine/model.safetensors" not in there
    assert loopback.sent < 100, "it stopped reading soon after what was announced"


def test_the_size_comes_first_and_the_files_go_into_the_folder_that_the_app_lists(
    loopback: Hub,
    guest_folder: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", f"{tmp_path / 'listed'}:{tmp_path / 'other'}")
    loopback.files = files_of(guest_folder("hf-gpt2") / "hf-gpt2")
    loopback.files |= dict.fromkeys(("pytorch_model.bin", "run.py"), b"code")
    asked = []

    def answer(question: str) -> str:
        asked.append((question, capsys.readouterr().err, fetched(tmp_path / "listed")))
        return "y"

    monkeypatch.setattr("builtins.input", answer)
    assert main(["fetch", "me/mine"]) == 0
    ((question, said, before),) = asked
    assert "me/mine: 5 files, 0 MB" in said and "[y/N]" in question and not before
    assert fetched(tmp_path / "listed") == {
        f"mine/{name}" for name in loopback.files if not name.endswith((".py", ".bin"))
    }
    assert "listed/mine  " in capsys.readouterr().out  # its fingerprint follows, because it was opened


@pytest.mark.parametrize("answer", ["", "no", EOFError()])
def test_who_does_not_agree_downloads_nothing(
    loopback: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: object
) -> None:
    def asked(question: str) -> str:
        if isinstance(answer, EOFError):
            raise answer
        return str(answer)

    monkeypatch.setattr("builtins.input", asked)
    assert main(["fetch", "me/mine", "--output", str(tmp_path / "out")]) == 2
    assert not fetched(tmp_path / "out")


@pytest.mark.parametrize(("how", "word"), [("", "pickles"), ("gone", "404")])
def test_what_cannot_be_fetched_is_one_sentence(
    loopback: Hub, tmp_path: Path, capsys: pytest.CaptureFixture, how: str, word: str
) -> None:
    loopback.files, loopback.how = {"pytorch_model.bin": b"x"}, how
    assert main(["fetch", "me/mine", "--yes", "--output", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert word in said and said.count("\n") == 1


HOSTILE = ("../escaped.json", "/etc/escaped.json", "..\\escaped.json", "a/b.json", "C:escaped.json", "*.json",
           "[ab].json", ".hidden.json", "con\x00.json", "a\nb.json", "-x.json", "%2e%2e%2fescaped.json")  # fmt: skip


def test_names_that_lead_elsewhere_are_not_asked_for(loopback: Hub, tmp_path: Path) -> None:
    loopback.files |= dict.fromkeys(HOSTILE, b"{}")
    plain = {name for name in loopback.files if name not in HOSTILE}
    assert main(["fetch", "me/mine", "--yes", "--output", str(tmp_path / "out" / "deep")]) == 0
    assert fetched(tmp_path / "out") == {f"deep/mine/{name}" for name in plain}
    assert not list(tmp_path.rglob("*escaped*"))


def fetch_and_die(at: int | None, output: Path, count: Path) -> int:
    """Run ``fetch`` in a separate process that is killed before its file-system change number ``at``.

    Returns:
        The exit status; ``count`` then holds the number of changes.
    """
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    seen = 0

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal seen
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if not (writes or event in CHANGES) or str(output) not in str(arguments[0]):
            return
        if seen == at:
            os.kill(os.getpid(), signal.SIGKILL)
        seen += 1

    sys.addaudithook(hook)
    try:
        ended = main(["fetch", "me/mine", "--yes", "--output", str(output)])
        count.write_text(str(seen))
        os._exit(ended)
    finally:
        os._exit(99)


CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.move", "shutil.rmtree", "os.truncate")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "n_steps"),
    [
        ("", 3),
        ("another file", 5),
        *(pytest.param(how, None, marks=pytest.mark.nightly) for how in ("", "another file")),
    ],
)
def test_killed_at_any_step_it_leaves_no_wrong_file_and_goes_on(
    loopback: Hub, tmp_path: Path, how: str, n_steps: int | None
) -> None:
    """Kill at every change, or only at ``n_steps`` of them."""
    whole, count = tmp_path / "whole", tmp_path / "count"
    assert fetch_and_die(None, whole, count) == 0
    steps = int(count.read_text())
    assert steps > 20
    for at in range(0, steps, steps // n_steps if n_steps else 1):
        output, loopback.how = tmp_path / str(at), how
        assert fetch_and_die(at, output, count) in (-signal.SIGKILL, 2)
        check_what_is_there(loopback, output / "mine")
        loopback.how = ""
        assert fetch_and_die(None, output, count) == 0
        assert files_of(output / "mine") == loopback.files
        assert [path.name for path in output.iterdir()] == ["mine"]


@pytest.mark.slow
def test_killed_before_a_wrong_file_is_deleted_it_fetches_that_file_again(
    loopback: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(path: Path, _file: object) -> bool:
        if path.name == "model.safetensors":
            raise KeyboardInterrupt
        return True

    arguments = ["fetch", "me/mine", "--yes", "--output", str(tmp_path / "out")]
    loopback.how = "another file"
    with monkeypatch.context() as patch:
        patch.setattr(fetch_files, "_matches", killed)
        assert main(arguments) == 130
    loopback.how = ""
    assert main(arguments) == 0
    assert files_of(tmp_path / "out" / "mine") == loopback.files


def check_what_is_there(loopback: Hub, folder: Path) -> None:
    """Check that final files are as the hub announced, and a folder with ``config.json`` is complete."""
    there = {file.name: file.read_bytes() for file in folder.glob("*") if file.is_file()}
    assert there.items() <= loopback.files.items()
    if "config.json" in there:
        assert there == loopback.files and transformer.load(folder)
