"""Shell commands as data, and the runner that parses arguments and reports errors."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from transformer.errors import CheckpointError, InputError, text_of

BAD_INPUT = 2
_INTERRUPTED, _NOBODY_READS = 128 + 2, 128 + 13  # how a shell reports SIGINT and SIGPIPE
_WIDEST_BEAM = 100  # with more, texts hardly change, and a cache per text fills the memory
_REMEDIES = {name: f"install it with: pip install {name}" for name in ("transformers", "huggingface_hub")}
_REMEDY = "install what training needs with: pip install -r requirements-train.txt"


Argument = tuple[tuple[str, ...], Mapping[str, Any]]  # the parameters of ``argparse.ArgumentParser.add_argument``


@dataclass(frozen=True)
class Command:
    """A command of a program.

    Attributes:
        name: What is typed, such as ``translate``.
        help: One line about it.
        run: Function that takes the arguments by name and returns the exit status; ``None`` means 0.
        arguments: What can be typed after the name.
    """

    name: str
    help: str
    run: Callable[..., int | None]
    arguments: tuple[Argument, ...] = ()


def argument(*names: str, **options: Any) -> Argument:
    """Describe one argument as ``add_argument`` does."""
    return names, options


def command(*arguments: Argument) -> Callable[[Callable[..., int | None]], Command]:
    """Turn the decorated function into a command of the same name; its docstring's first line is the help."""

    def make_command(run: Callable[..., int | None]) -> Command:
        first = (run.__doc__ or "").partition("\n")[0].removesuffix(".")
        return Command(run.__name__, first[:1].lower() + first[1:], run, arguments)

    return make_command


def run_command(
    commands: Sequence[Command],
    arguments: Sequence[str] | None = None,
    *,
    program: str = "python -m transformer",
    description: str = "",
) -> int:
    """Run the command that ``arguments`` name, by default those of this process.

    Returns:
        The command's exit status; 2 after an error, which is one sentence on standard error; 130 after Ctrl-C; 141 if
        the reader of the output has gone, as in ``| head``.

    Raises:
        SystemExit: For arguments that no command takes (2), and after ``--help`` (0).
    """
    parser = build_parser(commands, program=program, description=description)
    values = {name: _as_utf_8(value, name) for name, value in vars(parser.parse_args(arguments)).items()}
    command = values.pop("command")
    for stream in (sys.stdin, sys.stdout):
        if hasattr(stream, "reconfigure"):  # whatever the locale, and whatever bytes a pipe provides
            stream.reconfigure(encoding="utf-8", errors="replace")
    try:
        status = command.run(**values) or 0
        sys.stdout.flush()  # here, where a closed pipe can be handled
        return status
    except BrokenPipeError:
        # Output that is still buffered is discarded: Python would fail when it flushes it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _NOBODY_READS
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return _INTERRUPTED
    except ModuleNotFoundError as error:
        remedy = _REMEDIES.get(error.name or "", _REMEDY)
        print(f"error: {command.name} needs {error.name}; {remedy}", file=sys.stderr)
        return BAD_INPUT
    except (CheckpointError, InputError, ValueError, OSError) as error:
        print(f"error: {text_of(error)}", file=sys.stderr)
        return BAD_INPUT


def build_parser(commands: Sequence[Command], *, program: str, description: str) -> argparse.ArgumentParser:
    """Build the parser of a program that has these commands, in this order."""
    parser = argparse.ArgumentParser(prog=program, description=description)
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in commands:
        own = subparsers.add_parser(command.name, help=command.help)
        for names, options in command.arguments:
            own.add_argument(*names, **options)
        own.set_defaults(command=command)
    return parser


def _as_utf_8(value: Any, name: str) -> Any:
    """Decode a sentence as UTF-8 if the locale could not read its bytes; paths stay as they are."""
    if name in ("sentence", "target") and isinstance(value, str):
        return value.encode(errors="surrogateescape").decode(errors="replace")
    return value


@contextmanager
def progress_bar(unit: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that takes the completed and the total count, and draws them on a terminal."""
    from tqdm import tqdm

    with tqdm(unit=unit, disable=None) as bar:  # None: silent without a terminal

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield progress


def whole_number(text: str, *, least: int = 1) -> int:
    """Read an integer that is at least ``least``; anything else is refused by argparse in a sentence."""
    if text.isdecimal() and len(text) < 20 and int(text) >= least:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text[:40]!r} is not an integer ≥ {least}")


def beam_width(text: str) -> int:
    """Read the width of a beam search."""
    if (width := whole_number(text)) <= _WIDEST_BEAM:
        return width
    raise argparse.ArgumentTypeError(
        f"a beam of {text} is too wide: at every step it keeps as many texts and runs the model over all of them; "
        f"{_WIDEST_BEAM} are the most"
    )


from_zero = partial(whole_number, least=0)
CHECKPOINT = argument("--checkpoint", required=True, metavar="DIR")
JSON = argument("--json", dest="as_json", action="store_true", help="print one JSON object")
