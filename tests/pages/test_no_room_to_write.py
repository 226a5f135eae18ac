"""A full disk or read-only folder while the app runs: only an upload fails, with an explanation.

Typed text stays.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.pages.conftest import is_fine, said
from tests.ui.test_uploads import FILES, send
from ui.compute import uploads
from views.training.live_training import RUN

SENTENCE = "The dog sleeps under the table."


@pytest.fixture(params=[errno.ENOSPC, errno.EACCES], ids=["full disk", "read-only"])
def nothing_can_be_written(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Make writing fail from its call on; return the attempts since.

    A read-only folder refuses a new file, a full disk the writing of content: for the app both are the same.
    """
    tried: list[str] = []

    def refuse(path: object) -> None:
        tried.append(str(path))
        raise OSError(request.param, os.strerror(request.param), str(path))

    def refusing(really: Callable, writes: Callable[[object], bool]) -> Callable:
        def opened(path: object, mode: object = "r", *arguments: object, **options: object) -> object:
            return refuse(path) if writes(mode) and path != os.devnull else really(path, mode, *arguments, **options)

        return opened

    def begin() -> list[str]:
        by_name = refusing(io.open, lambda mode: bool(set(str(mode)) & set("wax+")))
        monkeypatch.setattr(builtins, "open", by_name)
        monkeypatch.setattr(io, "open", by_name)
        by_flags = refusing(os.open, lambda flags: bool(int(flags) & (os.O_WRONLY | os.O_RDWR)))
        monkeypatch.setattr(os, "open", by_flags)
        for name in ("replace", "rename", "mkdir", "truncate"):
            monkeypatch.setattr(os, name, lambda path, *_, **__: refuse(path))
        return tried

    return begin


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the server's folder for temporary files, with no upload in it yet."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    uploads.uploads_folder.cache_clear()
    yield tmp_path
    uploads.uploads_folder.cache_clear()


def test_pages_need_no_file(open_app, nothing_can_be_written, temporary) -> None:
    """A new sentence, a live training, a link to an upload: everything is kept in memory."""
    tried = nothing_can_be_written()
    app = open_app("overview", checkpoint="tiny-gpt", sentence=SENTENCE)
    app.text_input(key="sentence").set_value("The dog is old.").run()
    is_fine(app)
    app = open_app("training", checkpoint="tiny-gpt", sentence=SENTENCE, **{"training section": "now"})
    app.button(key="toy start").click().run()
    is_fine(app)
    job = app.session_state[RUN].job
    job.leave(app.session_state["long jobs: who"], at_once=True)
    assert job.wait(60)
    assert app.text_input(key="sentence").value == SENTENCE
    assert tried == []
    app = open_app("tokens", checkpoint="received-0123456789ab", sentence=SENTENCE)  # a link from somebody else
    is_fine(app)
    assert "There is no checkpoint 'received-0123456789ab' here" in said(app)


def test_an_upload_without_room_is_one_sentence(open_app, nothing_can_be_written, checkpoints_folder, temporary):
    files = {name: (checkpoints_folder / "tiny-gpt" / name).read_bytes() for name in FILES}
    app = open_app("checkpoint", checkpoint="tiny-bert", sentence=SENTENCE)
    nothing_can_be_written()
    app = send(app, files)
    assert not app.exception
    assert not app.error
    (warning,) = app.warning
    assert "cannot keep the files" in warning.value and "none of them was kept" in warning.value
    assert app.query_params["sentence"] in (SENTENCE, [SENTENCE])
    assert app.query_params["checkpoint"] in ("tiny-bert", ["tiny-bert"])
    assert app.segmented_control(key="checkpoint view").value == "card"  # the rest of the page is there


@pytest.mark.parametrize("fails", ["write", "replace"])
def test_an_upload_that_fails_half_way_leaves_nothing_and_can_be_sent_again(
    fails, open_app, checkpoints_folder, temporary, monkeypatch
) -> None:
    files = {name: (checkpoints_folder / "tiny-gpt" / name).read_bytes() for name in FILES}
    app = open_app("checkpoint", checkpoint="tiny-bert", sentence=SENTENCE)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full) if fails == "write" else patch.setattr(os, "replace", full)
        app = send(app, files)
    assert os.strerror(errno.ENOSPC) in app.warning[0].value
    (folder,) = (path for path in temporary.iterdir() if path.is_dir())
    assert list(folder.iterdir()) == []
    is_fine(send(app, files))
    assert len(list(folder.iterdir())) == 1
