"""The same work beside TransformerLens and BertViz: opening, everything of one pass, all heads in one picture.

    pip install -r requirements-benchmarks.txt transformer_lens bertviz
    python -m benchmarks.other_tools [--rounds 5] [--tokens 64]

GPT-2 small's shape with random weights; nothing is downloaded. A tool that is not installed is left out. Ratios are of
processor times that were measured side by side in this run (see ``interleaved.py``).
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import transformer
from benchmarks.interleaved import time_interleaved
from charts.canvas.attention_maps import attention_grid

PEER_GOAL, EAGER_GOAL = 0.5, 1.15  # × TransformerLens; × Hugging Face's eager pass with its attention maps

OURS = """
import transformer
from charts.canvas.attention_maps import attention_grid
checkpoint = transformer.load(folder)
trace = transformer.trace(checkpoint, sentence, strategy=transformer.Greedy(1))
views = [trace.attention("decoder", layer=layer, kind="self") for layer in range(12)]
html = attention_grid(views).html()
"""
BERTVIZ = """
from bertviz import model_view
from transformers import AutoModelForCausalLM, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
ids = tokenizer(sentence, return_tensors="pt").input_ids
attention = model(ids, output_attentions=True).attentions
tokens = tokenizer.convert_ids_to_tokens(ids[0])
html = model_view(attention, tokens, html_action="return").data
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=64)
    options = parser.parse_args(arguments)
    os.environ["HF_HUB_OFFLINE"] = "1"  # before its first import
    try:
        import transformers
    except ModuleNotFoundError:
        print("needs Hugging Face transformers: pip install -r requirements-benchmarks.txt", file=sys.stderr)
        return 2
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = _write_checkpoint(Path(name), transformers)
        sentence = "a" * options.tokens
        _opening(folder, transformers, options.rounds)
        _everything(folder, transformers, options.rounds, options.tokens)
        _picture(str(folder), sentence, options.rounds)
    return 0


def _write_checkpoint(folder: Path, transformers) -> Path:
    """GPT-2 small with random weights and a tokenizer that takes every byte as a token."""
    transformers.GPT2LMHeadModel(transformers.GPT2Config()).save_pretrained(folder)
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    entries = {piece: id for id, piece in enumerate([*letters, "<|endoftext|>"])}
    tokenizer = Tokenizer(models.BPE(vocab=entries, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    end = {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **end).save_pretrained(folder)
    return folder


def _opening(folder: Path, transformers, rounds: int) -> None:
    model_class, place = transformers.GPT2LMHeadModel, str(folder)
    functions = {
        "Glassformer": lambda: transformer.load(folder),
        "Hugging Face": lambda: model_class.from_pretrained(folder, attn_implementation="eager"),
    }
    if (bridge := _transformer_lens()) is not None:
        functions["TransformerLens"] = lambda: bridge.boot_transformers(place, device="cpu")
    _compare("opening, with its tokenizer", functions, rounds, {"TransformerLens": PEER_GOAL})


def _everything(folder: Path, transformers, rounds: int, n_tokens: int) -> None:
    ids = torch.randint(256, (1, n_tokens), generator=torch.Generator().manual_seed(0))
    ours = transformer.load(folder).model
    theirs = transformers.GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager").eval()

    def traced() -> None:
        with torch.inference_mode(), transformer.record():
            ours(ids)

    @torch.inference_mode()
    def eager() -> None:
        theirs(ids, output_attentions=True)

    functions = {"Glassformer": traced, "Hugging Face": eager}
    if (bridge := _transformer_lens()) is not None:
        lens = bridge.boot_transformers(str(folder), device="cpu")
        functions["TransformerLens"] = torch.inference_mode()(lambda: lens.run_with_cache(ids))
    goals = {"Hugging Face": EAGER_GOAL, "TransformerLens": PEER_GOAL}
    _compare(f"everything of one pass over {n_tokens} tokens (Hugging Face: attention only)", functions, rounds, goals)


def _picture(folder: str, sentence: str, rounds: int) -> None:
    """All 144 heads as one page of HTML: the time from the recorded weights to the page, its size, the code."""
    given = {"folder": folder, "sentence": sentence}
    ours = _run(OURS, given)
    functions: dict[str, Callable[[], object]] = {"Glassformer": lambda: attention_grid(ours["views"]).html()}
    pages = {"Glassformer": (OURS, ours["html"])}
    try:
        from bertviz import model_view
    except ModuleNotFoundError:
        print("BertViz is left out: pip install bertviz", file=sys.stderr)
    else:
        theirs = _run(BERTVIZ, given)
        attention, tokens = theirs["attention"], theirs["tokens"]
        functions["BertViz"] = lambda: model_view(attention, tokens, html_action="return")
        pages["BertViz"] = (BERTVIZ, theirs["html"])
    _compare(f"all 144 heads of {len(sentence)} tokens as a page", functions, rounds, {"BertViz": 1.0})
    for tool, (code, html) in pages.items():
        print(f"  {tool:<18}{len(html.encode()) / 1e6:8.2f} MB of HTML, {len(code.strip().splitlines())} lines of code")


def _run(code: str, given: dict[str, object]) -> dict[str, object]:
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
