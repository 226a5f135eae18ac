"""The command about what a checkpoint opens with."""

import argparse
import sys
from pathlib import Path


def add_openings(commands: argparse._SubParsersAction) -> None:
    """``openings``."""
    openings = commands.add_parser(
        "openings", help="ask a checkpoint whether it does what its opening.toml says, and propose heads for a sentence"
    )
    openings.add_argument("--checkpoint", required=True, metavar="DIR")
    openings.add_argument("--sentence", metavar="TEXT", help="show the sharpest heads of this sentence")
    openings.add_argument("--most", type=int, default=5, metavar="N", help="heads to show (default 5)")
    openings.set_defaults(command=_openings)


def _openings(options: argparse.Namespace) -> int:
    from transformer.files.checkpoints import load
    from transformer.files.opening_file import read_opening
    from transformer.heads.opening_checks import answer_in, complaints, sharpest_heads
    from transformer.runs.tracing import trace

    checkpoint, opening = load(options.checkpoint), read_opening(Path(options.checkpoint))
    status, asked = 0, [options.sentence] if options.sentence else []
    for example in opening.examples if opening and not asked else ():
        wrong = complaints(checkpoint, example)
        print(f"{'as said' if not wrong else 'WRONG  '}  {example.label['en']}: {example.sentence}")
        for line in wrong:
            print(f"         {line}")
            status = 1
    if opening is None and not asked:
        print(f"{options.checkpoint} has no opening.toml; see docs/checkpoints.md", file=sys.stderr)
        return 1
    if status:  # of what to take in its place, the opening's own sentence is the first to try
        asked = [opening.first.sentence]
    for sentence in asked:
        print(f"{sentence} → {answer_in(trace(checkpoint, sentence), sentence)!r}")
        for head in sharpest_heads(checkpoint, sentence, most=options.most):
            rows = "  ".join(f"{row} {query}→{key} {weight:.2f}" for row, (query, key, weight) in enumerate(head.rows))
            print(f"{head.stack} {head.kind} layer {head.layer} head {head.head}, {head.mean:.2f}: {rows}")
    return status
