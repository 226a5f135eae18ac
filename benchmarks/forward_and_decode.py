"""Cost of recording: recorded and plain passes, both compared with Hugging Face, on one thread.

    python -m benchmarks.forward_and_decode

Every number is a ratio of times measured side by side in this run (see ``interleaved.py``).
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from benchmarks import peers
from benchmarks.interleaved import Ratio, Timings, time_interleaved
from benchmarks.workload import MEDIUM, SMALL, Shape, random_checkpoint, sentence_of
from transformer.fast.shortcut import fast_path
from transformer.files.checkpoints import Checkpoint
from transformer.runs.decoding import Decoding, decode
from transformer.runs.decoding_strategies import Greedy
from transformer.runs.recorded import Recorded
from transformer.runs.tracing import trace

FORWARD_ROUNDS, DECODING_ROUNDS = 60, 12
TRACE_GOALS = {SMALL: 1.5, MEDIUM: 1.25}
DECODING_GOAL = 0.75
FLAT_GOAL = 1.1


@dataclass(frozen=True)
class Row:
    """One row of the table: what is compared, the result, and the goal."""

    what: str
    ratio: Ratio
    goal: float | None = None

    def __str__(self) -> str:
        numbers = f"{self.ratio.median:6.2f}  [{self.ratio.lower:.2f}, {self.ratio.upper:.2f}]"
        if self.goal is None:
            return f"  {self.what:<62}{numbers}"
        verdict = "met" if self.ratio.median <= self.goal else "MISSED"
        return f"  {self.what:<62}{numbers}   goal ≤ {self.goal:g}: {verdict}"


def forward_passes(shape: Shape, checkpoint: Checkpoint) -> dict[str, Callable[[], object]]:
    """Return functions for one pass over ``shape.n_tokens`` tokens, one per compared method."""
    model, inputs = checkpoint.model, shape.inputs()

    def plain() -> None:
        with torch.inference_mode(), fast_path():
            model(*inputs)

    def readable() -> None:
        with torch.inference_mode():
            model(*inputs)

    def traced() -> Mapping:
        return Recorded(model, inputs)

    def traced_and_read() -> list:
        return [activation.values for activation in traced().values()]

    functions = {"plain": plain, "readable": readable, "traced": traced, "read": traced_and_read}
    functions["peer"] = peers.Peer(shape, attention="sdpa").forward
    eager = peers.Peer(shape, attention="eager")
    functions["peer maps"] = lambda: eager.forward(output_attentions=True)
    return functions


def forward_rows(shape: Shape, times: Timings) -> list[Row]:
    """Return the rows of the table for forward passes."""
    return [
        Row("everything traced ÷ plain fused forward", times.ratio("traced", "plain"), TRACE_GOALS.get(shape)),
        Row("… and every array read ÷ plain", times.ratio("read", "plain")),
        Row("readable path, nothing recorded ÷ plain", times.ratio("readable", "plain")),
        Row("plain ÷ Hugging Face SDPA", times.ratio("plain", "peer")),
        Row("everything traced ÷ Hugging Face SDPA", times.ratio("traced", "peer")),
        Row("everything traced ÷ Hugging Face eager, output_attentions", times.ratio("traced", "peer maps")),
        Row("Hugging Face eager, output_attentions ÷ SDPA", times.ratio("peer maps", "peer")),
    ]


def decodings(shape: Shape, checkpoint: Checkpoint, *, n_short: int, n_long: int) -> dict[str, Callable[[], object]]:
    """Return functions for greedy decoding of exactly ``n_short`` or ``n_long`` tokens.

    "recorded" gives every activation of every step, as slices of one pass over the text; "traced" is what most pages do
    (``trace``): they show that pass as a whole.
    """
    # One special token is added: <s> before a prompt, </s> after a source.
    sentence = sentence_of(checkpoint.tokenizer, shape.n_tokens - 1)

    def write(n_tokens: int, *, record_steps: bool) -> Decoding:
        decoding = decode(checkpoint, sentence, Greedy(n_tokens), record_steps=record_steps)
        if len(decoding.tokens) != n_tokens:
            raise RuntimeError(f"{len(decoding.tokens)} tokens were written instead of {n_tokens}")
        return decoding

    peer = peers.Peer(shape, attention="sdpa")
    return {
        "plain": lambda: write(n_long, record_steps=False),
        "recorded": lambda: write(n_long, record_steps=True),
        "traced": lambda: trace(checkpoint, sentence, strategy=Greedy(n_long)),
        "plain short": lambda: write(n_short, record_steps=False),
        "recorded short": lambda: write(n_short, record_steps=True),
        "peer": lambda: peer.write(n_long),
    }


def decoding_rows(times: Timings, *, n_short: int, n_long: int) -> list[Row]:
    """Return the rows of the table for decoding."""
    rows = [
        Row("everything recorded ÷ Hugging Face generate", times.ratio("recorded", "peer"), DECODING_GOAL),
        Row("written, then traced in one pass ÷ Hugging Face generate", times.ratio("traced", "peer"), DECODING_GOAL),
        Row("plain ÷ Hugging Face generate", times.ratio("plain", "peer")),
        Row("everything recorded ÷ plain", times.ratio("recorded", "plain")),
    ]
    for name, text in (("recorded", "everything recorded"), ("plain", "plain")):
        ratio = times.ratio(name, f"{name} short", scale=n_short / n_long)
        rows.append(Row(f"time per token, {n_long} ÷ {n_short} tokens, {text}", ratio, FLAT_GOAL))
    return rows


def measure(
    shapes: Sequence[Shape], *, forward_rounds: int, decoding_rounds: int, n_short: int = 32, n_long: int = 128
) -> list[Row]:
    """Measure and print everything; return the rows."""
    rows: list[Row] = []
    for shape in shapes:
        checkpoint = random_checkpoint(shape.config)
        print(f"\n{shape.name}, vocabulary {shape.config.vocabulary_size}")
        times = time_interleaved(forward_passes(shape, checkpoint), rounds=forward_rounds, calls=2)
        _show("one forward pass", forward_rows(shape, times), times, rows)
        times = time_interleaved(decodings(shape, checkpoint, n_short=n_short, n_long=n_long), rounds=decoding_rounds)
        _show(f"greedy decoding of {n_long} tokens", decoding_rows(times, n_short=n_short, n_long=n_long), times, rows)
    return rows


def _show(title: str, new: list[Row], times: Timings, rows: list[Row]) -> None:
    print(f" {title}: " + ", ".join(f"{name} {times.milliseconds(name):.3g} ms" for name in times.seconds))
    for row in new:
        print(row)
    rows += new


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forward_and_decode", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=float, default=1.0, help="how many times as many rounds as usual (default 1)")
    options = parser.parse_args(arguments)
    if not options.rounds > 0:
        parser.error(f"--rounds is {options.rounds}; it must be greater than 0")
    torch.set_num_threads(1)
    start = time.monotonic()
    print(f"torch {torch.__version__}, one thread; median of ratios [quartiles]; times are medians of processor time")
    print(f"Hugging Face transformers {peers.VERSION}: GPT-2 and Marian of the same shape, random weights")
    measure(
        (SMALL, MEDIUM),
        forward_rounds=max(2, round(FORWARD_ROUNDS * options.rounds)),
        decoding_rounds=max(2, round(DECODING_ROUNDS * options.rounds)),
    )
    print(f"\n{time.monotonic() - start:.0f} seconds in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
