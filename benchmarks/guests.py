"""Cost of a guest: its recorded pass and its decoding, compared with those of its own code.

    python -m benchmarks.guests

Passes are measured with the app's memory settings, and again in a process that returns no memory to the system. The
models have random weights and are written to a temporary folder. Every number is a ratio of times measured side by
side in this run (see ``interleaved.py``).
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import torch
import transformers

from benchmarks.forward_and_decode import Row
from benchmarks.interleaved import time_interleaved
from transformer.fast.shortcut import fast_path
from transformer.guests.guest_model import GuestModel
from transformer.guests.opening import open_guest
from transformer.probes import record
from transformer.runs.decoding_state import DecodingState
from ui.server.freed_memory import KEPT, give_back_what_is_freed

GOAL = 1.05
N_TOKENS = 128
_EVERYTHING = 1024  # megabytes
_SIZES = {
    "vocab_size": 8000,
    "hidden_size": 384,
    "intermediate_size": 1024,
    "num_hidden_layers": 8,
    "num_attention_heads": 6,
    "max_position_embeddings": 512,
}
_SMOLLM2 = {
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
}
N_PROMPT, N_WRITTEN = 32, 40
_FAMILIES = {
    "phi": ("PhiForCausalLM", {}),
    "olmo2": ("Olmo2ForCausalLM", {}),
    "mixtral": ("MixtralForCausalLM", {"num_key_value_heads": 2, "num_local_experts": 4}),
}


def opened(name: str, fields: dict, folder: Path) -> tuple[GuestModel, Any, Any]:
    """Write a model with random weights, and return it as a guest and as its own eager and fused code."""
    model_class = getattr(transformers, name)
    torch.manual_seed(0)
    config = model_class.config_class(**{**_SIZES, **fields}, pad_token_id=0, bos_token_id=1, eos_token_id=2)
    model_class(config).save_pretrained(folder)
    guest = open_guest(folder, json.loads((folder / "config.json").read_text(encoding="utf-8"))).model
    eager, fused = (model_class.from_pretrained(folder, attn_implementation=way).eval() for way in ("eager", "sdpa"))
    return guest, eager, fused


def passes(kind: str, folder: Path) -> dict[str, Callable[[], object]]:
    """Return one pass over ``N_TOKENS`` tokens for each method."""
    guest, eager, fused = opened(*_FAMILIES[kind], folder / kind)
    ids = torch.randint(3, _SIZES["vocab_size"], (1, N_TOKENS))

    def recorded() -> object:
        with record() as recording:
            guest(ids)
        return recording

    def unwatched() -> object:
        with fast_path():
            return guest(ids)

    return {
        "recorded": recorded,
        "maps alone": lambda: _only_maps(guest, ids),
        "unwatched": unwatched,
        "eager": lambda: eager(input_ids=ids, use_cache=False, output_attentions=True),
        "fused": lambda: fused(input_ids=ids, use_cache=False),
    }


def _only_maps(guest: torch.nn.Module, ids: torch.Tensor) -> object:
    with record(names={name for name in guest.probes if name.endswith("attention.weights")}) as recording:
        guest(ids)
    return recording


def decodings(folder: Path) -> dict[str, Callable[[], object]]:
    """Return greedy decodings of ``N_WRITTEN`` tokens by a model of SmolLM2-135M's shape."""
    guest, _, fused = opened("SmolLM3ForCausalLM", _SMOLLM2, folder)
    prompt = torch.randint(3, _SIZES["vocab_size"], (1, N_PROMPT))
    fused.generation_config.eos_token_id = None
    settings = {"min_new_tokens": N_WRITTEN, "max_new_tokens": N_WRITTEN, "do_sample": False, "pad_token_id": 0}

    def written(*, cached: bool) -> list[int]:
        ids: list[int] = []
        with fast_path():
            state = DecodingState(guest, None, cached=cached)
            while len(ids) < N_WRITTEN:
                logits = state.feed(prompt if not ids else torch.tensor([ids[-1:]]))
                ids.append(int(logits.argmax()))
        return ids

    expected = fused.generate(prompt, **settings)[0, N_PROMPT:].tolist()
    if not written(cached=True) == written(cached=False) == expected:
        raise RuntimeError("the guest wrote other tokens than its own code")
    return {
        "decoded": lambda: written(cached=True),
        "decoded without cache": lambda: written(cached=False),
        "generated": lambda: fused.generate(prompt, **settings),
    }


def main(arguments: list[str] | None = None) -> int:
    """Print the table; return 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30, help="passes of each kind (default 30)")
    rounds = parser.parse_args(arguments).rounds
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        for kind, kept in product(_FAMILIES, (KEPT, _EVERYTHING)):
            give_back_what_is_freed(kept)
            times = time_interleaved(passes(kind, Path(folder) / str(kept)), rounds=rounds)
            print(f"{kind}, {N_TOKENS} tokens, eager with output_attentions {times.milliseconds('eager'):.0f} ms")
            print("  memory is returned as by the app" if kept == KEPT else "  no memory is returned")
            print(Row("recorded ÷ its own eager pass with output_attentions", times.ratio("recorded", "eager"), GOAL))
            print(Row("only maps recorded ÷ the same", times.ratio("maps alone", "eager"), GOAL))
            print(Row("nothing recorded ÷ its own fused pass", times.ratio("unwatched", "fused"), GOAL))
        times = time_interleaved(decodings(Path(folder) / "decoding"), rounds=max(2, rounds // 5))
        print(f"SmolLM2-135M's shape, {N_WRITTEN} tokens, generate {times.milliseconds('generated'):.0f} ms")
        print(Row("greedy decoding ÷ its own generate", times.ratio("decoded", "generated")))
        print(Row("greedy decoding ÷ the same without a cache", times.ratio("decoded", "decoded without cache")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
