"""A real Chromium."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

# Debian's two, the cheaper one first: without invisible windows and menus, a page costs a quarter less.
EXECUTABLES = ("chromium-headless-shell", "chromium")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yield a browser.

    Raises:
        RuntimeError: If there is no Chromium.
    """
    executable = next(filter(None, map(shutil.which, EXECUTABLES)), None)
    if executable is None:
        raise RuntimeError(
            f"there is no {' and no '.join(EXECUTABLES)} on this machine; install Debian's with: "
            f"apt-get install {EXECUTABLES[0]}"
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(ARGUMENTS))
        yield browser
        browser.close()
