"""The command that fits the Jacobian lens of a checkpoint and measures it beside the logit lens."""

import argparse
import json
import sys
from dataclasses import asdict

from transformer.commands.heads_command import progress_bar
from transformer.text.sentence_files import SHIPPED


def add_lens(commands: argparse._SubParsersAction) -> None:
    """``lens``."""
    lens = commands.add_parser("lens", help="fit the Jacobian lens, and measure it beside the logit lens (minutes)")
    lens.add_argument("--checkpoint", required=True, metavar="DIR")
    lens.add_argument(
        "--text",
        default=str(SHIPPED),
        metavar="FILE",
        help="one sentence a line, of which every third is kept for measuring (default: those that ship with this)",
    )
    lens.add_argument("--limit", type=int, metavar="N", help="read the first N sentences only")
    lens.add_argument("--batch-size", type=int, default=64, metavar="N", help="sentences at once (default 64)")
    lens.add_argument(
        "--save", action="store_true", help="write jacobian_lens.safetensors into the checkpoint, for the app"
    )
    lens.add_argument("--json", action="store_true", help="print one JSON object")
    lens.set_defaults(command=_lens)


def _lens(options: argparse.Namespace) -> int:
    from transformer.files.checkpoints import load
    from transformer.heads.role_tables import first_sentences
    from transformer.predictions.jacobian_lens import jacobian_lens, save_jacobian_lens

    checkpoint, sentences = load(options.checkpoint), first_sentences(options.text, options.limit)
    with progress_bar("sentence") as progress:
        found = jacobian_lens(checkpoint, sentences, batch_size=options.batch_size, progress=progress)
    if options.save:
        print(f"saved in {save_jacobian_lens(checkpoint, found)}", file=sys.stderr)
    measured = found.agreement
    if options.json:
        print(json.dumps({"sentences": found.sentences, "places": found.places, "agreement": asdict(measured)}))
        return 0
    print(f"fitted on {found.places} places of {found.sentences} sentences")
    print(f"names the final word, at {measured.places} places of {measured.sentences} other sentences:\n")
    print(f"{'after':<12}{'logit lens':>12}{'Jacobian lens':>15}")
    for step, (logit, jacobian) in enumerate(zip(measured.logit, measured.jacobian, strict=True)):
        print(f"{f'layer {step - 1}' if step else 'embedding':<12}{logit:>12.1%}{jacobian:>15.1%}")
    return 0
