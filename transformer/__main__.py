"""Command line of ``python -m transformer``: results on standard output, problems on standard error."""

from transformer.system.import_path import drop_current_folder
from transformer.system.offline import stay_offline

if __name__ == "__main__":
    drop_current_folder()  # before the other imports, which a file in the current folder could shadow
    stay_offline()

import importlib.util
from collections.abc import Sequence

from transformer.commands.command_line import Command, run_command
from transformer.commands.hub_commands import fetch
from transformer.commands.model_commands import heads, inspect, trace, translate
from transformer.commands.training_commands import evaluate, train
from transformer.system.terminal import escape_output

COMMANDS = (train, translate, trace, evaluate, heads, inspect, fetch)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Args:
        arguments: The command line without the program's name; ``sys.argv[1:]`` if ``None``.

    Returns:
        The exit status that ``run_command`` describes.
    """
    return run_command(_all_commands(), arguments, description="A Transformer that can be looked into.")


def _all_commands() -> tuple[Command, ...]:
    """Return all commands, with ``web`` if ``glassformer`` is installed beside the library."""
    if not importlib.util.find_spec("glassformer"):
        return COMMANDS
    from glassformer.commands import web

    return (*COMMANDS, web)


if __name__ == "__main__":
    escape_output()
    raise SystemExit(main())
