"""nginx with deploy/nginx.conf in front of servers on this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

import pytest

from tests.harness.app_server import REPOSITORY, free_port


@contextmanager
def nginx_before(replicas: Sequence[int], folder: Path) -> Iterator[int]:
    """Run nginx before the ports of the replicas, and yield its own port; without nginx, skip the test."""
    if not (nginx := shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")):
        pytest.skip("there is no nginx on this machine; install Debian's with: apt-get install nginx-light")
    port, places = free_port(), cycle(replicas)
    text = (REPOSITORY / "deploy" / "nginx.conf").read_text(encoding="utf-8")
    text, count = re.subn(r"server app-\d+:8501", lambda _: f"server 127.0.0.1:{next(places)}", text)
    assert count == 2, "one line for each replica"
    text = text.replace("listen 8080;", f"listen 127.0.0.1:{port};")
    own = "".join(f"{kind}_temp_path {kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (folder / "nginx.conf").write_text(text.replace("http {", f"http {{ access_log off; {own}", 1), encoding="utf-8")
    # As root, nginx would work as a user who cannot write here, and would truncate what it buffers on disk.
    whole = "daemon off; pid nginx.pid; error_log error.log;" + ("user root;" if os.geteuid() == 0 else "")
    command = [nginx, "-p", str(folder), "-c", "nginx.conf", "-g", whole]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            yield port
        finally:
            process.terminate()
