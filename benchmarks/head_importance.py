"""What measuring all heads costs: the importance map against one plain batched pass over as many copies.

    python -m benchmarks.head_importance [--checkpoint checkpoints/en-fr]

Every number is a ratio of times that were measured side by side in this run (see ``interleaved.py``).
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

import transformer
from benchmarks.forward_and_decode import Row
from benchmarks.interleaved import Timings, time_interleaved
from benchmarks.workload import Shape, random_checkpoint, sentence_of
from transformer.analysis.answers.effects import answer_under, effect_of
from transformer.analysis.heads.head_importance import all_heads, head_importance
from transformer.config import ModelConfig
from transformer.files.checkpoints import Checkpoint
from transformer.probes import fast_path
from transformer.runs.edits import ablate_head
from transformer.runs.strategies import Greedy
from transformer.runs.traces import Trace

GOAL = 3.0  # × one plain batched forward of as many copies
EFFECT_GOAL = 1.0  # seconds, for a sentence of 20 tokens
SENTENCE = "The old man who lives in the small house near the sea told us a long story about his brother."
ROUNDS = 12

WRITER = Shape(
    "decoder-only, d 256, 6 layers × 8 heads, 20 tokens",
    ModelConfig(kind="decoder-only", d_model=256, n_heads=8, d_ff=1024, n_encoder_layers=0, n_decoder_layers=6),
    20,
)
TRANSLATOR = Shape(
    "encoder-decoder, d 256, 2 + 2 layers × 8 heads, 20 + 20 tokens",
    ModelConfig(d_model=256, n_heads=8, d_ff=1024, n_encoder_layers=2, n_decoder_layers=2),
    20,
)  # both have 48 heads


def functions(trace: Trace) -> dict[str, Callable[[], object]]:
    """All heads in batched passes; a plain pass over as many copies; one head after the other."""
    checkpoint = trace.checkpoint
    heads = all_heads(checkpoint.config)
    ids = [tokens.ids for tokens in (trace.source, trace.target) if tokens is not None]
    copies = [torch.tensor([sequence]).expand(len(heads), -1) for sequence in ids]

    def plain() -> None:
        with torch.inference_mode(), fast_path():
            checkpoint.model(*copies)

    def one_by_one() -> None:
        for stack, kind, layer, head in heads:
            effect_of(trace, [ablate_head(stack, layer=layer, kind=kind, head=head)])

    def one_edit() -> None:
        edits = [ablate_head(heads[0].stack, layer=0, head=0)]
        effect_of(trace, edits)
        if checkpoint.config.has_decoder:
            answer_under(checkpoint, trace.sentence, edits, strategy=Greedy(20))

    batched = lambda: head_importance(trace)  # noqa: E731
    return {"plain": plain, "batched": batched, "one by one": one_by_one, "one edit": one_edit}


def rows_of(times: Timings) -> list[Row]:
    return [
        Row("importance of all heads ÷ plain pass over as many copies", times.ratio("batched", "plain"), GOAL),
        Row("one head after the other ÷ plain pass over as many copies", times.ratio("one by one", "plain")),
    ]


def measure(cases: Sequence[tuple[str, Checkpoint, str]], *, rounds: int) -> list[Row]:
    """Measure and print (name, checkpoint, sentence) after another; returns the rows that were printed."""
    rows: list[Row] = []
    for name, checkpoint, sentence in cases:
        strategy = Greedy(20) if checkpoint.config.has_decoder else None
        trace = transformer.trace(checkpoint, sentence, strategy=strategy)
        times = time_interleaved(functions(trace), rounds=rounds)
        print(f"\n{name}: {len(all_heads(checkpoint.config))} heads")
        print("  " + ", ".join(f"{what} {times.milliseconds(what):.3g} ms" for what in times.seconds))
        seconds = times.milliseconds("one edit") / 1000
        verdict = "met" if seconds <= EFFECT_GOAL else "MISSED"
        print(f"  {'one edit: its effect and a new answer of 20 tokens':<62}{seconds:6.2f} s   goal ≤ 1 s: {verdict}")
        for row in rows_of(times):
            print(row)
            rows.append(row)
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.head_importance", description=__doc__.split("\n")[0])
    parser.add_argument("--checkpoint", type=Path, help="measure this one, too, on a sentence of about 20 tokens")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args(arguments)
    if options.rounds < 2:
        parser.error(f"--rounds is {options.rounds}; at least 2 are needed for a spread")
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, one thread; median of ratios [quartiles]; times are medians of processor time")
    cases = []
    for shape in (WRITER, TRANSLATOR):
        checkpoint = random_checkpoint(shape.config)
        cases.append((shape.name, checkpoint, sentence_of(checkpoint.tokenizer, shape.n_tokens - 1)))
    if options.checkpoint is not None:
        cases.append((str(options.checkpoint), transformer.load(options.checkpoint), SENTENCE))
    measure(cases, rounds=options.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
