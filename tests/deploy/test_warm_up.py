"""The class entry is warm before it answers, and the settings of the app hold; in a fresh process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
# Starts the application as a server does, inspects it when it reports ready, and stops it.
STARTED = """
import asyncio, gc, json, sys
from unittest import mock

import transformer
from deploy.serve import application
from streamlit import config

load, trace = mock.Mock(wraps=transformer.load), mock.Mock(wraps=transformer.trace_of)
told, found = asyncio.Queue(), {}

async def main():
    app = application(address="127.0.0.9", port=4321)
    said = asyncio.Queue()
    running = asyncio.create_task(app({"type": "lifespan", "asgi": {"version": "3.0"}}, told.get, said.put))
    await told.put({"type": "lifespan.startup"})
    found["said"] = (await said.get())["type"]
    from streamlit.runtime import Runtime
    found["sessions"] = len(Runtime.instance()._session_mgr.list_sessions())
    await told.put({"type": "lifespan.shutdown"})
    await running

with mock.patch("transformer.load", load), mock.patch("transformer.trace_of", trace):
    asyncio.run(main())
settings = ("runner.postScriptGC", "server.address", "server.port", "server.maxUploadSize", "server.fileWatcherType",
            "theme.baseFontSize", "client.showErrorDetails", "browser.gatherUsageStats")
found |= {"loads": load.call_count, "traces": trace.call_count, "frozen": gc.get_freeze_count(),
          "modules": sorted({name.split(".")[0] for name in sys.modules}),
          "settings": {name: config.get_option(name) for name in settings}}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def started(checkpoints_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> dict:
    """Return the findings, from a working directory outside of the repository."""
    environment = {**os.environ, "GLASSFORMER_CHECKPOINTS": str(checkpoints_folder), "PYTHONPATH": str(ROOT)}
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    command = [sys.executable, "-c", STARTED]
    result = subprocess.run(command, cwd=elsewhere, env=environment, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr[-2000:]
    assert "warming up" not in result.stderr, result.stderr  # no page reported an error
    return json.loads(result.stdout.splitlines()[-1])


def test_it_is_ready_when_the_first_pages_have_run(started: dict) -> None:
    assert started["said"] == "lifespan.startup.complete"
    assert started["loads"] == 1, "both pages use the same model"
    assert started["traces"] >= 1 and started["sessions"] == 0, "the visits that warm it up leave no session behind"
    assert started["frozen"] > 100_000, "everything loaded is excluded from garbage collection"
    assert "torch" in started["modules"]
    for_others = ("altair", "vl_convert", "captum", "matplotlib", "sacrebleu", "sklearn", "scipy")
    assert not set(started["modules"]) & set(for_others)


def test_the_settings_of_the_app_hold_from_anywhere(started: dict) -> None:
    assert started["settings"] == {
        "runner.postScriptGC": False,
        "server.address": "127.0.0.9",
        "server.port": 4321,
        "server.maxUploadSize": 100,
        "server.fileWatcherType": "none",
        "theme.baseFontSize": 17,
        "client.showErrorDetails": "none",
        "browser.gatherUsageStats": False,
    }
