"""The benchmark of the pages changes what its clicks name, and nothing else."""

from __future__ import annotations

from pathlib import Path

from benchmarks import pages


def test_a_click_keeps_a_sentence_that_is_too_long_for_the_address(checkpoints_folder: Path) -> None:
    sentence = "a cat " * 700
    app = pages.open_page("attention", {"checkpoint": "tiny-gpt", "sentence": sentence})
    app.run()
    runs = pages.click_through(app)
    for change in pages.CLICKS:
        next(runs)
        focus = app.session_state["focus"]
        assert focus.sentence == sentence and all(getattr(focus, name) == value for name, value in change.items())
