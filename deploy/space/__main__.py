"""Write the files of a Space of Hugging Face into a new folder: ``python -m deploy.space FOLDER``.

A Space builds the ``Dockerfile`` at its root and reads its card from ``README.md``. The Dockerfile is
``deploy/Dockerfile`` with a Space's values as defaults of its arguments; the files that it copies are beside it.
"""

from transformer.system.import_path import drop_current_folder

if __name__ == "__main__":
    drop_current_folder()  # before the other imports, which a file in the current folder could shadow

import argparse
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CARD = Path(__file__).with_name("README.md")
# A Space runs as user 1000, sends visitors to the port in its card, and is public.
ARGUMENTS = {"UID": "1000", "PORT": "7860", "PUBLIC": "1"}
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.pyc", "node_modules")


def dockerfile() -> str:
    """Return ``deploy/Dockerfile`` with ``ARGUMENTS``.

    Raises:
        ValueError: If it lacks one of them.
    """
    text = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    for name, value in ARGUMENTS.items():
        text, found = re.subn(rf"^ARG {name}=.*$", f"ARG {name}={value}", text, flags=re.MULTILINE)
        if not found:
            raise ValueError(f"deploy/Dockerfile has no ARG {name}; a Space needs it to be {value}")
    return text


def sources(text: str) -> list[Path]:
    """Return what a Dockerfile copies from the repository, with ``*`` expanded."""
    named = [line.split()[1] for line in text.splitlines() if line.startswith("COPY ")]
    return sorted({path for name in named for path in ROOT.glob(name)})


def write(folder: Path) -> None:
    """Write all files of the Space; ``folder`` appears when it is complete.

    Raises:
        ValueError: If the folder is not empty.
    """
    folder = folder.resolve()
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty; name a new folder")
    unfinished = folder.with_name(f".{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)  # left by a run that was killed
    text = dockerfile()
    for source in sources(text):
        target = unfinished / source.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=_LEFT_OUT)
        else:
            shutil.copy2(source, target)
    (unfinished / "Dockerfile").write_text(text, encoding="utf-8")
    shutil.copy2(CARD, unfinished / "README.md")
    if folder.exists():
        folder.rmdir()
    unfinished.rename(folder)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write a Space into the folder named on the command line."""
    parser = argparse.ArgumentParser(prog="python -m deploy.space", description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="a new folder")
    options = parser.parse_args(arguments)
    try:
        write(options.folder)
    except ValueError as error:
        parser.error(str(error))
    print(f"{options.folder} is ready: docs/hosting.md says how to send it")


if __name__ == "__main__":
    main()
