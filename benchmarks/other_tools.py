"""Comparison with TransformerLens and BertViz: opening, a full recorded pass, all heads in one figure.

    pip install -r requirements-benchmarks.txt transformer_lens bertviz
    python -m benchmarks.other_tools [--rounds 5] [--tokens 64]

GPT-2 small's shape with random weights; nothing is downloaded. A tool that is not installed is left out. Ratios are of
processor times measured side by side in this run (see ``interleaved.py``).
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import CodeType

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import transformer
from benchmarks.interleaved import time_interleaved
from transformer.probes import Recording
from transformer.runs.recorded import Recorded

PEER_GOAL, EAGER_GOAL = 0.5, 1.15  # × TransformerLens; × Hugging Face's eager pass with its attention maps
OPEN_GOAL = 1.0  # × from_pretrained, which opens no tokenizer

# The same job: from the attention of a model and its tokens to a page with all heads.
OURS = """
from glassformer.notebook import attention_grid
html = attention_grid(attention, tokens).html()
"""
BERTVIZ = """
from bertviz import model_view
html = model_view(attention, tokens, html_action="return").data
"""
PAGE_TOKENS = (64, 128)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=64, help="of the pass (default 64)")
    options = parser.parse_args(arguments)
    os.environ["HF_HUB_OFFLINE"] = "1"  # must be set before the first import
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = _write_checkpoint(Path(name), transformers)
        _compare_opening(folder, transformers, options.rounds)
        _compare_recorded_pass(folder, transformers, options.rounds, options.tokens)
        for n_tokens in PAGE_TOKENS:
            _compare_figures(folder, transformers, options.rounds, n_tokens)
    return 0


def _write_checkpoint(folder: Path, transformers, **shape: int) -> Path:
    """Write GPT-2 small, unless ``shape`` differs, with random weights; each byte is a token."""
    transformers.GPT2LMHeadModel(transformers.GPT2Config(**shape)).save_pretrained(folder)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    entries = {piece: id for id, piece in enumerate([*letters, "<|endoftext|>"])}
    tokenizer = Tokenizer(models.BPE(vocab=entries, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    end = {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **end).save_pretrained(folder)
    return folder


def _compare_opening(folder: Path, transformers, rounds: int) -> None:
    model_class, place = transformers.GPT2LMHeadModel, str(folder)
    functions = {
        "Glassformer": lambda: transformer.load(folder),
        "Hugging Face": lambda: model_class.from_pretrained(folder, attn_implementation="eager"),
    }
    if (bridge := _transformer_lens()) is not None:
        functions["TransformerLens"] = lambda: bridge.boot_transformers(place, device="cpu")
    goals = {"Hugging Face": OPEN_GOAL, "TransformerLens": PEER_GOAL}
    _compare("opening, with its tokenizer", functions, rounds, goals)


def _compare_recorded_pass(folder: Path, transformers, rounds: int, n_tokens: int) -> None:
    ids = torch.randint(256, (1, n_tokens), generator=torch.Generator().manual_seed(0))
    ours = transformer.load(folder).model
    theirs = transformers.GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager").eval()

    def traced() -> Recording:
        with torch.inference_mode(), transformer.record() as recording:
            ours(ids)
        return recording

    @torch.inference_mode()
    def eager() -> None:
        theirs(ids, output_attentions=True)

    functions = {"Glassformer": traced, "Hugging Face": eager}
    if (bridge := _transformer_lens()) is not None:
        lens = bridge.boot_transformers(str(folder), device="cpu")
        functions["TransformerLens"] = torch.inference_mode()(lambda: lens.run_with_cache(ids))
    goals = {"Hugging Face": EAGER_GOAL, "TransformerLens": PEER_GOAL}
    _compare(f"everything of one pass over {n_tokens} tokens (Hugging Face: attention only)", functions, rounds, goals)
    print(f"  memory of its trace: {Recorded(ours, (ids,)).n_bytes / 1e6:.1f} MB")


def _compare_figures(folder: Path, transformers, rounds: int, n_tokens: int) -> None:
    """Draw all heads of the same attention as one HTML page: time, size, lines of code."""
    theirs = transformers.GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager").eval()
    ids = torch.randint(256, (1, n_tokens), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        attention = theirs(ids, output_attentions=True).attentions
    given = {"attention": attention, "tokens": [chr(ord("a") + id % 26) for id in ids[0].tolist()]}
    codes = {"Glassformer": OURS}
    if find_spec("bertviz") is None:
        print("BertViz is left out: pip install bertviz", file=sys.stderr)
    else:
        codes["BertViz"] = BERTVIZ
    functions: dict[str, Callable[[], object]] = {
        tool: partial(_run, compile(code, tool, "exec"), given) for tool, code in codes.items()
    }
    n_heads = sum(layer.shape[1] for layer in attention)
    _compare(f"all {n_heads} heads of {n_tokens} tokens as a page", functions, rounds, {"BertViz": 1.0})
    for tool, code in codes.items():
        size = len(str(_run(code, given)["html"]).encode()) / 1e6
        print(f"  {tool:<18}{size:8.2f} MB of HTML, {len(code.strip().splitlines())} lines of code")


def _run(code: CodeType | str, given: dict[str, object]) -> dict[str, object]:
    names = dict(given)
    exec(code, names)
    return names


def _transformer_lens() -> type | None:
    try:
        from transformer_lens.model_bridge import TransformerBridge
    except ModuleNotFoundError:
        print("TransformerLens is left out: pip install transformer_lens", file=sys.stderr)
        return None
    return TransformerBridge


def _compare(title: str, functions: dict[str, Callable[[], object]], rounds: int, goals: dict[str, float]) -> None:
    times = time_interleaved(functions, rounds=rounds)
    print(f"{title}: " + ", ".join(f"{name} {times.milliseconds(name):.0f} ms" for name in functions))
    for name in functions:
        if name != "Glassformer":
            ratio = times.ratio("Glassformer", name)
            verdict = (
                f"≤ {goals[name]:g}: {'met' if ratio.median <= goals[name] else 'missed'}" if name in goals else ""
            )
            print(f"  ÷ {name:<18}{ratio.median:6.2f} [{ratio.lower:.2f}, {ratio.upper:.2f}]   {verdict}")


if __name__ == "__main__":
    raise SystemExit(main())
