"""An upload is another checkpoint: its address opens it for everybody, and its sender's list has it."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

import transformer
from tests.pages.conftest import codes, is_fine, open_path, said
from transformer.files import received_files
from ui.compute import loading, uploads

FILES = ("config.json", "model.safetensors", "tokenizer.json", "README.md")
Open = Callable[..., AppTest]
GONE = f"received-{'0123456789abcdef' * 4}"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(uploads, "uploads_folder", lambda: tmp_path / "uploads")
    yield


@pytest.fixture
def sent(checkpoints_folder: Path) -> str:
    """The tiny classifier as a third party uploads it, with a card that would fetch an image."""
    files = {name: (checkpoints_folder / "tiny-sentiment" / name).read_bytes() for name in FILES}
    files["README.md"] = b"# Mine\n\n![](http://example.org/seen.png) <script>alert(1)</script>"
    return uploads.receive(files, uploads.uploads_folder()).name


def test_its_address_opens_it_its_card_is_text_and_no_other_list_has_it(open_app: Open, sent: str) -> None:
    for page in ("compare", "checkpoint"):
        app = open_app(page, checkpoint=sent)
        is_fine(app)
        assert app.selectbox(key="sidebar checkpoint").value == sent and "showing" not in said(app)
    assert "example.org" not in said(app), "the card fetches nothing"
    assert any("![](http://example.org/seen.png) <script>" in code.value for code in app.code)
    assert not any(sent in option for option in open_app("checkpoint").selectbox(key="sidebar checkpoint").options)


def test_an_upload_that_is_gone_is_named_and_the_nearest_thing_opened(open_app: Open) -> None:
    app = open_app("tokens", checkpoint=GONE)
    is_fine(app)
    assert f"There is no checkpoint '{GONE[:60]}…' here" in said(app)


def send(app: AppTest, files: dict[str, bytes]) -> AppTest:
    app.file_uploader[0].set_value([(name, content, "application/octet-stream") for name, content in files.items()])
    return next(button for button in app.button if button.label == "Open these files").click().run()


def test_sending_the_files_opens_the_checkpoint_and_what_is_refused_leaves_everything_as_it_was(
    open_app: Open, checkpoints_folder: Path, tiny_checkpoint: Callable
) -> None:
    app, box = open_app("checkpoint", sentence="Hello there."), {"key": "sidebar checkpoint"}
    for files, why in (
        ({"model.pt": b"\x80\x04."}, "is a pickle"),
        ({"config.json": b"{}"}, "is missing; choose all files"),
    ):
        app = send(app, files)
        assert why in app.warning[0].value and not app.exception and not app.error
        assert app.query_params["sentence"] in ("Hello there.", ["Hello there."])
        assert app.selectbox(**box).value == "tiny-translator"
    app = send(app, {name: (checkpoints_folder / "tiny-gpt" / name).read_bytes() for name in FILES})
    is_fine(app)
    name = f"received-{tiny_checkpoint('gpt').fingerprint}"
    assert app.query_params["checkpoint"] in (name, [name])
    assert app.query_params["sentence"] in ("Hello there.", ["Hello there."])
    app.selectbox(**box).select("tiny-bert").run()
    assert f"{name[: len('received-') + 12]} (yours)" in app.selectbox(**box).options


class Visitors:
    """Several sessions of one server: ``visitors("A")`` is the one that acts next."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes]) -> None:
        self.here, self.asleep, self.states, self.now, self.files = set(), set(), {}, "", files
        monkeypatch.setattr(uploads, "session_id", lambda: self.now)
        monkeypatch.setattr(uploads, "is_connected", lambda session: session in self.here)
        monkeypatch.setattr(uploads, "may_come_back", lambda session: session in self.here | self.asleep)
        for table in ("_users", "_away"):
            monkeypatch.setattr(uploads, table, {})
        monkeypatch.setattr(uploads, "st", SimpleNamespace(session_state={}))

    def __call__(self, name: str) -> Visitors:
        self.now = name
        self.here.add(name)
        uploads.st.session_state = self.states.setdefault(name, {})
        return self

    def send(self, number: int) -> str:
        """Return another checkpoint for each number."""
        config = json.dumps({**json.loads(self.files["config.json"]), "dropout": number / 1000}).encode()
        return uploads.keep({**self.files, "config.json": config})


@pytest.fixture
def visitors(monkeypatch: pytest.MonkeyPatch, checkpoints_folder: Path) -> Visitors:
    files = {name: (checkpoints_folder / "tiny-gpt" / name).read_bytes() for name in FILES}
    return Visitors(monkeypatch, files)


def test_uploads_of_one_visitor_leave_those_of_another(visitors: Visitors) -> None:
    mine = [visitors("A").send(number) for number in (1, 2)]
    theirs = [visitors("B").send(number) for number in range(10, 17)]
    assert uploads.own_uploads() == tuple(theirs[-uploads.MOST_OWN :])
    assert not any(map(uploads.is_here, theirs[: -uploads.MOST_OWN]))
    visitors("A")
    assert uploads.own_uploads() == tuple(mine)


def test_what_another_visitor_has_opened_stays(visitors: Visitors) -> None:
    shared = visitors("B").send(1)
    assert visitors("A") and uploads.folder_of(shared).is_dir()
    for number in range(10, 16):
        visitors("B").send(number)
    assert uploads.is_here(shared) and shared not in uploads.own_uploads()


def test_an_upload_is_opened_although_a_folder_of_the_app_has_its_name(
    visitors: Visitors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = visitors("A").send(1)
    shutil.copytree(uploads.uploads_folder() / name, tmp_path / name)
    monkeypatch.setenv(loading.FOLDER_VARIABLE, str(tmp_path))
    assert loading.checkpoint_path(name) == uploads.uploads_folder() / name
    shutil.rmtree(uploads.uploads_folder() / name)
    assert loading.checkpoint_path(name) == tmp_path / name, "a link to it still opens it"


def test_unused_uploads_are_removed_when_space_is_short_and_more_is_refused(
    visitors: Visitors, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = visitors("A").send(1)
    size = sum(file.stat().st_size for file in uploads.uploads_folder().rglob("*.*"))
    monkeypatch.setattr(uploads, "settings", lambda: SimpleNamespace(uploads_mb=2.5 * size / 1_000_000))
    visitors.here.remove("A")
    stays = visitors("B").send(2)
    assert uploads.is_here(left), "there is space for two"
    new = visitors("C").send(3)
    assert not uploads.is_here(left) and uploads.is_here(stays) and uploads.is_here(new)
    with pytest.raises(transformer.CheckpointError, match="visitors are using those it has"):
        visitors("D").send(4)
    assert uploads.is_here(stays) and uploads.is_here(new) and uploads.own_uploads() == ()
    assert visitors("C").send(3) == new, "sent again, it needs no more space"


def test_what_a_sleeping_phone_uses_goes_only_if_it_sleeps_for_long_and_there_is_no_space(
    visitors: Visitors, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that is loaded again leaves such a session, whose uploads must not block others."""
    now = 1000.0
    monkeypatch.setattr(uploads, "time", SimpleNamespace(monotonic=lambda: now))
    mine = visitors("A").send(1)
    size = sum(file.stat().st_size for file in uploads.uploads_folder().rglob("*.*"))
    monkeypatch.setattr(uploads, "settings", lambda: SimpleNamespace(uploads_mb=1.5 * size / 1_000_000))
    visitors.here.remove("A")
    visitors.asleep.add("A")
    for later in (0, uploads.AWAY - 1):
        now = 1000.0 + later
        with pytest.raises(transformer.CheckpointError, match="visitors are using those it has"):
            visitors("B").send(2)
    visitors("A")  # is back, and asleep again
    with pytest.raises(transformer.CheckpointError):
        visitors("B").send(2)
    visitors.here.remove("A")
    now += 2 * uploads.AWAY
    with pytest.raises(transformer.CheckpointError):
        visitors("B").send(2)
    assert uploads.is_here(mine)
    now += uploads.AWAY
    assert uploads.is_here(visitors("B").send(2)) and not uploads.is_here(mine)


def test_a_path_is_typed_where_one_person_uses_the_server(
    open_app: Open, checkpoints_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "_typed", {})
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(checkpoints_folder / "tiny-gpt", elsewhere / "mine")
    shutil.copytree(checkpoints_folder / "tiny-gpt", elsewhere / "tiny-sentiment")  # a name that is in use
    (elsewhere / "empty").mkdir()
    app = open_app("checkpoint")
    for path in ("/no/such/folder", "~nobody-of-that-name/x", elsewhere / "mine" / "config.json"):
        assert any("is not a directory" in warning.value for warning in open_path(app, path).warning)
    assert any("lacks" in warning.value for warning in open_path(app, elsewhere / "empty").warning)
    assert loading.typed_checkpoints() == ()
    is_fine(open_path(app, elsewhere / "mine"))
    assert app.selectbox(key="sidebar checkpoint").value == "mine"
    assert loading.open_folder(str(elsewhere / "tiny-sentiment")) == "elsewhere/tiny-sentiment"
    assert loading.open_folder(str(checkpoints_folder / "tiny-gpt")) == "tiny-gpt"  # it is already in the list
    app = open_app("masks", checkpoint="elsewhere/tiny-sentiment")
    is_fine(app)
    assert any(f'transformer.load("{elsewhere.resolve()}/tiny-sentiment")' in code for code in codes(app))


def test_typed_paths_are_refused_where_the_server_serves_other_visitors(checkpoints_folder: Path, monkeypatch) -> None:
    monkeypatch.setattr(loading, "for_one_person", lambda: False)
    with pytest.raises(transformer.CheckpointError, match="is not a directory"):
        loading.open_folder(str(checkpoints_folder / "tiny-gpt"))


@pytest.mark.parametrize(
    ("address", "headers", "one"),
    [
        ("127.0.0.1", {"Host": "127.0.0.1:8501"}, True),
        ("localhost", {"Host": "localhost:8501"}, True),
        ("::1", {"Host": "[::1]:8501"}, True),
        ("0.0.0.0", {"Host": "127.0.0.1:8501"}, False),
        (None, {"Host": "localhost:8501"}, False),
        ("127.0.0.1", {"Host": "class.example.org"}, False),
        ("127.0.0.1", {"Host": "evil.example:8501"}, False),
        ("127.0.0.1", {"Host": "localhost:8501", "X-Forwarded-For": "192.0.2.7"}, False),
    ],
)
def test_one_person_is_who_sits_at_this_machine(
    address: str | None, headers: dict[str, str], one: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading.st, "get_option", lambda name: address)
    monkeypatch.setattr(loading.st, "context", SimpleNamespace(headers=headers))
    assert loading.for_one_person() is one


def test_visitors_do_not_wait_while_another_upload_is_checked(
    visitors: Visitors, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = visitors("first").send(1)
    checking, ended = threading.Event(), threading.Event()
    load = received_files.load

    def load_slowly(path: Path) -> object:
        if threading.current_thread() is not threading.main_thread():
            checking.set()
            assert ended.wait(60)
        return load(path)

    monkeypatch.setattr(received_files, "load", load_slowly)
    stranger = threading.Thread(target=visitors("second").send, args=(2,))
    stranger.start()
    assert checking.wait(60)
    assert uploads.folder_of(mine).is_dir()  # opens an upload
    assert visitors("third").send(3) != mine  # sends another one
    ended.set()
    stranger.join(60)
    assert len(list(uploads.uploads_folder().iterdir())) == 3
