"""Command ``steer``: a direction in the residual stream, beside random ones of the same length."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from transformer.commands.command_line import CHECKPOINT, JSON, Command, argument, from_zero, progress_bar

if TYPE_CHECKING:
    from transformer.interventions.steering import SteeringEffect


def _finite(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if number - number == 0:
        return number
    raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a finite number")


def _steer(
    checkpoint: str,
    sentence: str,
    layer: int,
    stack: str | None,
    strength: float,
    prompts: list[str] | None,
    head: str | None,
    word: str | None,
    controls: int,
    as_json: bool,
) -> None:
    from transformer.files.checkpoints import load
    from transformer.interventions.steering import steering_effect
    from transformer.runs.directions import BETWEEN
    from transformer.runs.tracing import trace

    if sum(map(bool, (prompts, head, word))) != 1:
        raise ValueError("steer needs one direction: --prompts A B, --head 1.self.3 or --word TOKEN")
    model = load(checkpoint)
    stack = stack or ("decoder" if model.config.has_decoder else "encoder")
    source = f"prompts {BETWEEN.join(prompts)}" if prompts else f"head {head} of {sentence}" if head else f"word {word}"
    edit = f"steer:{stack}.{layer}.residual={strength:g} {source}"
    with progress_bar("direction") as progress:
        found = steering_effect(trace(model, sentence), edit, seeds=range(1, controls + 1), progress=progress)
    if as_json:
        numbers = {"length": found.length, "stream": found.stream, "before": found.before}
        print(json.dumps({"edit": edit, **numbers, "directions": found.records()}, ensure_ascii=False))
    else:
        print(report(found))


def report(found: SteeringEffect) -> str:
    """Return the outputs before and after, and a table of the direction and its controls."""
    lines = [
        f"edit      {found.edit}",
        f"length    {found.length:.3g} (the stream there: {found.stream:.3g} on average)",
        f"before    {_line(found.before)}",
        f"after     {_line(found.steered.text)}",
        "",
        f"{'direction':<12}{'KL':>9}{'log p':>9}{'gains most':>20}  output",
    ]
    for one in (found.steered, *found.controls):
        name = "steering" if one.seed is None else f"random {one.seed}"
        gains = f"{one.gains} {one.gain:+.3f}"
        lines.append(f"{name:<12}{one.kl:>9.3g}{one.change:>+9.3g}{gains:>20}  {_line(one.text)}")
    return "\n".join(lines)


def _line(text: str) -> str:
    return " ".join(text.split())


STEER = Command(
    "steer",
    "add a direction to the residual stream, beside random directions of the same length",
    _steer,
    (
        CHECKPOINT,
        argument("--sentence", required=True),
        argument("--layer", type=from_zero, required=True, metavar="N", help="the layer that reads the changed stream"),
        argument("--stack", choices=("encoder", "decoder"), help="by default the one that writes the output"),
        argument("--strength", type=_finite, default=1.0, metavar="C", help="factor of the direction (default 1)"),
        argument("--prompts", nargs=2, metavar=("A", "B"), help="direction: mean of A − mean of B"),
        argument("--head", metavar="L.KIND.H", help="direction: what a head such as 1.self.3 writes in the sentence"),
        argument("--word", metavar="TOKEN", help="direction: the row of the output matrix of a token, or of a class"),
        argument("--controls", type=from_zero, default=8, metavar="N", help="random directions (default 8)"),
        JSON,
    ),
)
