"""Cost of a long text: the pass, one layer of it, the Attention page, and memory above the model.

    python -m benchmarks.long_texts PATH [--tokens 2048]

The text is made of the included sentences. The clock is the processor time of the process, on one thread; drawing in
the browser is not included. "The kernels alone" are the same products of matrices and the same fused attention on
random numbers: no pass takes less.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import torch
from torch.nn import functional as F

import transformer
from benchmarks.pages import open_page, problems
from benchmarks.pages import seconds_of as page_seconds
from tests.harness.process_memory import status_megabytes
from transformer.files.checkpoints import Checkpoint
from transformer.runs.recording_size import pass_bytes
from transformer.text.sentence_files import SHIPPED, read_sentences
from ui.compute import loading
from ui.server.freed_memory import give_back_what_is_freed
from ui.shell.focus import _FOCUS

FIRST_VIEW, MEMORY = 5.0, 1500.0  # goals: processor seconds, MB


def seconds_of(action: Callable[[], object]) -> float:
    """Return the processor seconds of a call."""
    begun = time.process_time()
    action()
    return time.process_time() - begun


def text_of(checkpoint: Checkpoint, n_tokens: int) -> str:
    """Return a text of about ``n_tokens`` tokens, and not more."""
    words: list[str] = []
    for sentence in cycle(read_sentences(SHIPPED)):
        longer = [*words, *sentence.split()]
        if len(checkpoint.tokenizer.encode(" ".join(longer))) >= n_tokens:
            return " ".join(words)
        words = longer
    raise AssertionError("there are sentences")


def kernels_alone(checkpoint: Checkpoint, n_tokens: int) -> float:
    """Return the seconds of all products with weights and of the fused attention of one pass."""
    config, model = checkpoint.config, checkpoint.model
    inside = [part for name, part in model.named_modules() if isinstance(part, torch.nn.Linear) and ".layers." in name]
    inputs = {width: torch.randn(1, n_tokens, width) for width in {part.in_features for part in inside}}
    heads = torch.randn(1, config.n_heads, n_tokens, config.d_head)

    def run() -> None:
        for part in inside:
            F.linear(inputs[part.in_features], part.weight)
        for _ in range(config.n_decoder_layers):
            F.scaled_dot_product_attention(heads, heads, heads, is_causal=True)

    return seconds_of(run)


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint", type=Path, help="a folder or a GGUF file of a model that continues texts")
    parser.add_argument("--tokens", type=int, default=2048)
    asked = parser.parse_args()
    give_back_what_is_freed()  # as in the app
    path = asked.checkpoint.resolve(strict=True)
    loading._typed[path.name] = path
    checkpoint = loading.load_checkpoint(path.name)
    text = text_of(checkpoint, asked.tokens)
    short = {"checkpoint": path.name, "sentence": "The cat sat on the mat."}
    open_page("attention", short).run()  # libraries are loaded, and the model is open
    before = status_megabytes("VmRSS")
    app = open_page("attention", {**short, "sentence": text})
    first = page_seconds(app)
    print("first view of Attention", f"{first:.1f} s (goal {FIRST_VIEW:g})", *problems(app)[:2])
    opened = app.session_state[_FOCUS]
    before_it, last = abs(opened.layer - 1), checkpoint.config.n_decoder_layers - 1
    changes = {"another head": {"head": abs(opened.head - 1)}, "the layer before": {"layer": before_it}}
    changes |= {"another row": {"token": opened.token - 1}, "the last layer": {"layer": last}}
    for name, change in changes.items():
        app.session_state[_FOCUS] = replace(app.session_state[_FOCUS], **change)
        print(name, f"{page_seconds(app):.2f} s")
    peak = status_megabytes("VmHWM") - before
    with torch.inference_mode():
        alone = kernels_alone(checkpoint, asked.tokens)
    n_tokens = len(checkpoint.tokenizer.encode(text))
    begun = time.process_time()
    trace = transformer.trace(checkpoint, text, strategy=transformer.Greedy(1))
    passed = time.process_time() - begun
    layer = seconds_of(lambda: trace.attention("decoder", 0))
    print(f"{n_tokens} tokens: the pass {passed:.1f} s, the kernels alone {alone:.1f} s; one layer {layer:.2f} s")
    below = alone * opened.layer / checkpoint.config.n_decoder_layers
    print(f"the kernels of the layers below layer {opened.layer}, which the first view shows: {below:.1f} s")
    complete = pass_bytes(checkpoint.model, target=n_tokens) / 1e6
    print(f"at most {peak:.0f} MB above the model (goal {MEMORY:g}); a complete recording takes {complete:,.0f} MB")


if __name__ == "__main__":
    main()
