"""Glassformer for a class: what ``streamlit run app.py`` shows, but warm, and with less to send.

    python -m deploy.serve                       # http://127.0.0.1:8501, this machine only
    python -m deploy.serve --address 0.0.0.0     # for everybody on the network

Everything else is set in ``.streamlit/config.toml``, as always.
"""

from transformer.system.import_path import drop_current_folder
from transformer.system.offline import stay_offline

if __name__ == "__main__":
    drop_current_folder()  # before the other imports, which a file in the current folder could shadow
    stay_offline()

import argparse
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from transformer.system.terminal import escape_output

if __name__ == "__main__":
    escape_output()  # before Streamlit sets up its loggers, which may print names from a file

# Before torch is loaded: threads that spin while waiting take most of the speed from thirty sessions.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from ui.server.freed_memory import give_back_what_is_freed
from ui.server.settings import hosts, stop_if_wrong

stop_if_wrong()  # before the rest, which reads settings when it is loaded
give_back_what_is_freed()

import streamlit as st
import uvicorn
from starlette.types import ASGIApp

from deploy.guard import Guard
from deploy.static_files import CompressedStaticFiles
from deploy.warm_up import warm_up
from deploy.websocket import RememberingWebSocket
from ui.server.sent_files import guard_requests
from ui.server.streamlit_private import config, ignore_settings_of_current_folder
from ui.server.upload_folders import remove_abandoned_folders, remove_folders_at_sigterm

SCRIPT = Path(__file__).resolve().parent.parent / "app.py"
STATIC = Path(st.__file__).parent / "static" / "static"
PING = 30  # seconds between two pings on a quiet WebSocket, as with ``streamlit run``
SHUTDOWN_SECONDS = 5  # time for open connections after a signal to stop


@asynccontextmanager
async def ready(_: st.App) -> AsyncIterator[None]:
    """Warm up before uvicorn listens: the health check answers once this reaches its ``yield``."""
    await warm_up()
    yield


def application(*, address: str | None = None, port: int | None = None) -> ASGIApp:
    """Return the ASGI application, with ``.streamlit/config.toml`` beside ``app.py``.

    ``address`` and ``port`` become Streamlit's settings, by which it checks the origin of requests.
    """
    ignore_settings_of_current_folder(SCRIPT.parent)
    app = st.App(SCRIPT, lifespan=ready)  # first, because it tells Streamlit where the configuration is
    for name, value in (("address", address), ("port", port)):
        if value is not None:
            config.set_option(f"server.{name}", value)
    if not config.get_option("server.allowedHosts"):
        config.set_option("server.allowedHosts", hosts(config.get_option("server.address")))
    guard_requests()
    prefix = (config.get_option("server.baseUrlPath") or "").strip("/")
    return Guard(CompressedStaticFiles(app, folder=STATIC, prefix=f"/{prefix}" if prefix else ""))


def main(arguments: Sequence[str] | None = None, *, program: str = "python -m deploy.serve") -> None:
    """Run the server until it is stopped."""
    parser = argparse.ArgumentParser(prog=program, description=__doc__.split("\n")[0])
    parser.add_argument("--address", help="where to listen; 0.0.0.0 lets the network in (default: 127.0.0.1)")
    # Only ``streamlit run`` reads Streamlit's own variables; an image sets its port once, by this one.
    port = os.environ.get("STREAMLIT_SERVER_PORT")
    parser.add_argument("--port", type=int, default=port, help="(default: STREAMLIT_SERVER_PORT, or 8501)")
    options = parser.parse_args(arguments)
    remove_abandoned_folders()
    remove_folders_at_sigterm()
    app = application(address=options.address, port=options.port)
    uvicorn.run(
        app,
        host=config.get_option("server.address"),
        port=config.get_option("server.port"),
        ws=RememberingWebSocket,
        ws_ping_interval=PING,
        ws_ping_timeout=PING,
        ws_max_size=int(config.get_option("server.maxMessageSize")) * 1_000_000,
        ssl_certfile=config.get_option("server.sslCertFile"),
        ssl_keyfile=config.get_option("server.sslKeyFile"),
        access_log=False,
        log_config=None,  # Streamlit has already set up uvicorn's loggers
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )


if __name__ == "__main__":
    main()
