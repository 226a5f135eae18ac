"""Exported graphs, made once for all tests of the web page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from transformer.files.checkpoints import Checkpoint
from web import graphs, site
from web.graphs import Graph

expect.set_options(timeout=60_000)  # 5 s by default; a busy machine may take longer


@pytest.fixture(scope="session", autouse=True)
def exported_once() -> Iterator[None]:
    """Keep the graphs of each folder, because torch takes seconds to export them."""
    export = graphs.graphs_of
    made: dict[Path, tuple[Graph, ...]] = {}

    def graphs_of(checkpoint: Checkpoint, folder: Path) -> tuple[Graph, ...]:
        if folder not in made:
            made[folder] = export(checkpoint, folder)
        return made[folder]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graphs, "graphs_of", graphs_of)
        patch.setattr(site, "graphs_of", graphs_of)
        yield
