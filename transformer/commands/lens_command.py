"""Command ``lens``: fit the Jacobian lens of a checkpoint and compare it with the logit lens."""

import json
import sys
from dataclasses import asdict

from transformer.commands.command_line import CHECKPOINT, JSON, LIMIT, Command, argument, progress_bar
from transformer.text.sentence_files import SHIPPED


def _lens(checkpoint: str, text: str, limit: int | None, batch_size: int, save: bool, as_json: bool) -> None:
    from transformer.commands.role_tables import first_sentences
    from transformer.files.checkpoints import load
    from transformer.predictions.jacobian_lens import jacobian_lens, save_jacobian_lens

    model, sentences = load(checkpoint), first_sentences(text, limit)
    with progress_bar("sentence") as progress:
        found = jacobian_lens(model, sentences, batch_size=batch_size, progress=progress)
    if save:
        print(f"saved in {save_jacobian_lens(model, found)}", file=sys.stderr)
    measured = found.agreement
    if as_json:
        print(json.dumps({"sentences": found.sentences, "places": found.places, "agreement": asdict(measured)}))
        return
    print(f"fitted on {found.places} places of {found.sentences} sentences")
    print(f"names the final word, at {measured.places} places of {measured.sentences} other sentences:\n")
    print(f"{'after':<12}{'logit lens':>12}{'Jacobian lens':>15}")
    for step, (logit, jacobian) in enumerate(zip(measured.logit, measured.jacobian, strict=True)):
        print(f"{f'layer {step - 1}' if step else 'embedding':<12}{logit:>12.1%}{jacobian:>15.1%}")


LENS = Command(
    "lens",
    "fit the Jacobian lens, and measure it beside the logit lens (minutes)",
    _lens,
    (
        CHECKPOINT,
        argument(
            "--text",
            default=str(SHIPPED),
            metavar="FILE",
            help="one sentence a line, of which every third is kept for measuring (default: those that ship with this)",
        ),
        LIMIT,
        argument("--batch-size", type=int, default=64, metavar="N", help="sentences at once (default 64)"),
        argument(
            "--save", action="store_true", help="write jacobian_lens.safetensors into the checkpoint, for the app"
        ),
        JSON,
    ),
)
