"""Somebody else's checkpoint, opened and traced, beside Hugging Face's own way: GPT-2 small's shape, random weights.

    python -m benchmarks.families [--rounds 8] [--tokens 128]

Every number is a ratio of times that were measured side by side in this run (see ``interleaved.py``).
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks.interleaved import Timings, time_interleaved
from transformer.families.foreign_folder import open_model, read_json
from transformer.probes import record
from transformer.runs.activation_arrays import RecordedActivations
from transformer.runs.slim_activations import slimmed

TRACE_GOAL, OPEN_GOAL, MEMORY_GOAL = 1.15, 1.0, 60.0  # × eager with attentions; × from_pretrained; MB


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=128)
    options = parser.parse_args(arguments)
    try:
        import transformers
    except ModuleNotFoundError:
        print("needs Hugging Face transformers: pip install -r requirements-benchmarks.txt", file=sys.stderr)
        return 2
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        transformers.GPT2LMHeadModel(transformers.GPT2Config()).save_pretrained(folder)
        measure(folder, transformers.GPT2LMHeadModel, rounds=options.rounds, tokens=options.tokens)
    return 0


def measure(folder: Path, model_class: type, *, rounds: int, tokens: int) -> None:
    fields = read_json(folder / "config.json")
    ours = open_model(folder, fields).model
    theirs = model_class.from_pretrained(folder, attn_implementation="eager").eval()
    ids = torch.randint(ours.config.vocabulary_size, (1, tokens), generator=torch.Generator().manual_seed(0))

    def traced() -> RecordedActivations:
        with torch.inference_mode(), record() as recording:
            ours(ids)
        return recording

    @torch.inference_mode()
    def eager() -> object:
        return theirs(ids, output_attentions=True)

    passes = time_interleaved({"traced": traced, "eager": eager}, rounds=rounds)
    opening = time_interleaved(
        {
            "opened": lambda: open_model(folder, fields),
            "from_pretrained": lambda: model_class.from_pretrained(folder, attn_implementation="eager"),
        },
        rounds=rounds,
    )
    recording = traced()
    whole = RecordedActivations(ours.probes, recording.tensors).n_bytes / 1e6
    kept = slimmed(ours, recording).n_bytes / 1e6
    print(f"{sum(p.numel() for p in ours.parameters()) / 1e6:.0f} M parameters, {tokens} tokens, {rounds} rounds\n")
    _row("everything traced ÷ eager, output_attentions", passes, "traced", "eager", TRACE_GOAL)
    _row("opened ÷ from_pretrained", opening, "opened", "from_pretrained", OPEN_GOAL)
    met = "met" if kept <= MEMORY_GOAL else "missed"
    print(f"{'memory of a trace':<48}{kept:6.1f} MB of {whole:.1f}   ≤ {MEMORY_GOAL:g}: {met}")


def _row(what: str, timings: Timings, name: str, base: str, goal: float) -> None:
    ratio, met = timings.ratio(name, base), "met"
    if ratio.median > goal:
        met = "missed"
    milliseconds = f"{timings.milliseconds(name):.0f} ms"
    print(
        f"{what:<48}{ratio.median:6.2f} [{ratio.lower:.2f}, {ratio.upper:.2f}]  {milliseconds:>9}   ≤ {goal:g}: {met}"
    )


if __name__ == "__main__":
    raise SystemExit(main())
