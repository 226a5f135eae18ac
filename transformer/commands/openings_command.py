"""Command ``openings``: check the claims in the openings of checkpoints."""

import sys

from transformer.commands.command_line import CHECKPOINT, Command, argument


def _openings(checkpoint: str, sentence: str | None, most: int) -> int:
    from transformer.commands.opening_checks import answer_in, complaints, sharpest_heads
    from transformer.files.checkpoints import load
    from transformer.files.opening_file import read_opening
    from transformer.runs.tracing import trace

    model = load(checkpoint)
    opening = read_opening(model.path)
    status, asked = 0, [sentence] if sentence else []
    for example in opening.examples if opening and not asked else ():
        wrong = complaints(model, example)
        print(f"{'as said' if not wrong else 'WRONG  '}  {example.label['en']}: {example.sentence}")
        for line in wrong:
            print(f"         {line}")
            status = 1
    if opening is None and not asked:
        print(f"{checkpoint} has no opening.toml; see docs/checkpoints.md", file=sys.stderr)
        return 1
    if status:  # the first sentence to try as a replacement is the opening's own
        asked = [opening.first.sentence]
    for text in asked:
        print(f"{text} → {answer_in(trace(model, text), text)!r}")
        for head in sharpest_heads(model, text, most=most):
            rows = "  ".join(f"{row} {query}→{key} {weight:.2f}" for row, (query, key, weight) in enumerate(head.rows))
            print(f"{head.stack} {head.kind} layer {head.layer} head {head.head}, {head.mean:.2f}: {rows}")
    return status


OPENINGS = Command(
    "openings",
    "ask a checkpoint whether it does what its opening.toml says, and propose heads for a sentence",
    _openings,
    (
        CHECKPOINT,
        argument("--sentence", metavar="TEXT", help="show the sharpest heads of this sentence"),
        argument("--most", type=int, default=5, metavar="N", help="heads to show (default 5)"),
    ),
)
