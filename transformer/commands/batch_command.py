"""Command ``batch``: what each head contributes over many prompts or pairs, and how much that varies."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from transformer.commands.command_line import BAD_INPUT, CHECKPOINT, JSON, Command, argument, progress_bar

if TYPE_CHECKING:
    from transformer.heads.prompt_batch import PromptBatch, Spread

_SHOWN = 20


def _batch(checkpoint: str, prompts: str | None, largest: int, out: str | None, as_json: bool) -> int:
    from transformer.disk.tables import csv_text
    from transformer.disk.whole_files import write_text
    from transformer.files.checkpoints import load
    from transformer.heads.prompt_batch import PAIRS, cases_of, prompt_batch, read_lines

    lines, model = read_lines(prompts or PAIRS), load(checkpoint)
    cases, problems = cases_of(model, lines)
    for problem in problems:
        print(problem, file=sys.stderr)
    with progress_bar("line") as progress:
        found = prompt_batch(model, cases, largest=largest, progress=progress)
    if out:
        write_text(Path(out), csv_text(found.records()))
    if as_json:
        everything = {"gap": found.gap._asdict(), "parts": found.records(), "lines": found.lines()}
        print(json.dumps(_without_nan(everything), ensure_ascii=False))
    else:
        print(report(found))
    return BAD_INPUT if problems else 0


BATCH = Command(
    "batch",
    "average attribution, patching and roles of heads over many prompts",
    _batch,
    (
        CHECKPOINT,
        argument(
            "prompts",
            metavar="FILE",
            nargs="?",
            help="CSV with the columns clean, corrupted, answer, other, of which all but clean may be left out, or one "
            "prompt a line; by default ten pairs that come along",
        ),
        argument(
            "--largest",
            type=int,
            default=10,
            metavar="N",
            help="heads that are truly patched, not estimated (default 10)",
        ),
        argument("--out", metavar="FILE", help="write all heads and sub-layers there, as CSV"),
        JSON,
    ),
)


def report(found: PromptBatch) -> str:
    """Return a table of the measurements per line, and of the strongest heads: mean ± standard deviation."""
    lines = [f"{'line':<6}{'answer':<16}{'not':<16}{'d':>9}{'corrupted':>11}"]
    lines += [
        f"{one.line.number:<6}{one.answer:<16}{one.other:<16}{one.clean:>9.3g}{_number(one.corrupted):>11}"
        for one in found.said
    ]
    lines += ["", f"{'part':<30}{'attribution':>20}{'estimated':>20}{'patched':>20}{'share':>8}  role"]
    ranked = sorted(found.parts, key=lambda part: -part.size)
    for part in ranked[:_SHOWN]:
        place = f"{part.stack} {part.kind} {part.layer}" + (f".{part.head}" if part.head >= 0 else "")
        spreads = "".join(f"{_spread(one):>20}" for one in (part.attribution, part.estimated, part.patched))
        role = f"{part.role} {part.share:.0%}" if part.role and not math.isnan(part.share) else part.role
        lines.append(f"{place:<30}{spreads}{_number(found.share(part)):>8}  {role}")
    if len(ranked) > _SHOWN:
        lines.append(f"… and {len(ranked) - _SHOWN} more; --out FILE has them all")
    return "\n".join(lines)


def _spread(one: Spread) -> str:
    return f"{one.mean:.3g} ± {_number(one.std)}" if one.count else "–"


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3g}"


def _without_nan(value: object) -> object:
    """Replace NaN by null, since JSON has no NaN."""
    if isinstance(value, Mapping):
        return {name: _without_nan(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_without_nan(one) for one in value]
    return None if value != value else value
