"""Cost of the head atlas over 500 sentences: processor time and memory, for two sizes of model.

    python -m benchmarks.atlas [--threads 1] [--sentences 500] [CHECKPOINT …]

Our models read the 84 included sentences repeatedly; the large shape, 30 × 9 heads with random weights, reads sentences
of 32 tokens. The clock is the processor time of the process, including helper threads. Memory is the peak of the
process above its memory with the model loaded. Each model has a separate process.
"""

import argparse
import json
import subprocess
import time
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path

import torch

from benchmarks.workload import sentence_of
from harness.process_memory import status_megabytes
from transformer.families.build import build_model
from transformer.families.llama import llama_config
from transformer.families.values import Values
from transformer.files.checkpoints import Checkpoint, load
from transformer.heads.head_atlas import head_habits
from transformer.system.python_process import start_python
from transformer.text.sentence_files import read_sentences

LARGE = "SmolLM2's shape, random weights"
GOALS = {False: 20.0, True: 600.0}  # processor seconds of one core, i.e. 5 minutes on two
MEMORY_GOAL = 500.0  # MB
TOKENS = 32
SMOLLM2 = {
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "vocab_size": 49_152,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": True,
    "hidden_act": "silu",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "checkpoints", nargs="*", default=["checkpoints/gpt-en", "checkpoints/bert-en", "checkpoints/en-fr", LARGE]
    )
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--threads", type=int, default=1, help="of torch (default 1)")
    options = parser.parse_args(arguments)
    for name in options.checkpoints:
        large = name == LARGE
        goal = GOALS[large]
        wall, seconds, memory, heads, rows = _alone(name, options.sentences, options.threads)
        met = ["met" if value <= most else "missed" for value, most in ((seconds, goal), (memory, MEMORY_GOAL))]
        print(
            f"{name:<34}{heads:4} heads {rows:6,} rows  {seconds:6.1f} s of the processor ({wall:.1f} s) ≤ {goal:g}: "
            f"{met[0]}   {memory:5.0f} MB ≤ {MEMORY_GOAL:g}: {met[1]}",
            flush=True,
        )
    return 0


def _alone(name: str, n_sentences: int, threads: int) -> tuple[float, float, float, int, int]:
    """Run ``measure`` in a separate process."""
    asked = f"measure({name!r}, {n_sentences}, {threads})"
    code = f"import json\nfrom benchmarks.atlas import measure\nprint(json.dumps({asked}))"
    process = start_python("-c", code, cwd=Path.cwd(), stdout=subprocess.PIPE, text=True)
    printed, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"measuring {name} alone ended with exit status {process.returncode}")
    return tuple(json.loads(printed))


def measure(name: str, n_sentences: int, threads: int) -> tuple[float, float, float, int, int]:
    """Return (wall seconds, processor seconds, megabytes above the model, heads, rows per head)."""
    torch.set_num_threads(threads)
    checkpoint = smollm2() if name == LARGE else load(name)
    sentences = read_sentences() if name != LARGE else [sentence_of(checkpoint.tokenizer, TOKENS - 1)]
    many = list(islice(cycle(sentences), n_sentences))
    head_habits(checkpoint, many[:1])  # exclude one-time work: imports, kernels
    before = status_megabytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    clock, processor = time.perf_counter(), time.process_time()
    found = head_habits(checkpoint, many)
    wall, seconds = time.perf_counter() - clock, time.process_time() - processor
    rows = next(iter(found.values())).n_rows
    return wall, seconds, status_megabytes("VmHWM") - before, len(found), rows


def smollm2() -> Checkpoint:
    """Return SmolLM2-135M's shape with random weights and the tokenizer of ``gpt-en``."""
    torch.manual_seed(0)
    model = build_model(llama_config(Values(SMOLLM2))).eval()
    return Checkpoint(Path(LARGE), model, load("checkpoints/gpt-en").tokenizer, card="")


if __name__ == "__main__":
    raise SystemExit(main())
