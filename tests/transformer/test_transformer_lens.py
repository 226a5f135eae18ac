"""Attribution and patching of a GPT-2 model compared with TransformerLens.

Runs if ``transformer_lens`` is installed (``benchmarks/README.md`` says how); nothing else needs it.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch

os.environ.setdefault("HF_HUB_OFFLINE", "1")
bridge = pytest.importorskip("transformer_lens.model_bridge")

import transformer  # noqa: E402
from tests.foreign_checkpoints import foreign_checkpoint  # noqa: E402
from transformer import Checkpoint, Trace  # noqa: E402
from transformer.attribution.direct_logit_attribution import attribute  # noqa: E402
from transformer.interventions.activation_patching import contrast, head_places, recovered_shares  # noqa: E402
from transformer.runs.decoding_strategies import Greedy  # noqa: E402

Pair = tuple[Checkpoint, "bridge.TransformerBridge"]
SENTENCE, OTHER = "the cat sat", "the cat sit"  # the same number of tokens


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    folder = foreign_checkpoint("hf-gpt2", tmp_path_factory.mktemp("lens"))
    return transformer.load(folder), bridge.TransformerBridge.boot_transformers(str(folder), device="cpu")


def traced(checkpoint: Checkpoint, sentence: str) -> tuple[Trace, torch.Tensor]:
    trace = transformer.trace(checkpoint, sentence, strategy=Greedy(1))
    return trace, torch.tensor([trace.target.ids])


def test_both_open_the_same_model(pair: Pair) -> None:
    checkpoint, lens = pair
    trace, ids = traced(checkpoint, SENTENCE)
    with torch.inference_mode():
        logits, cache = lens.run_with_cache(ids)
    np.testing.assert_allclose(trace.values("decoder.logits"), logits[0], rtol=0, atol=2e-5)
    for layer in range(checkpoint.config.n_decoder_layers):
        ours = trace.attention("decoder", layer=layer, kind="self").weights
        np.testing.assert_allclose(ours, cache["pattern", layer][0], rtol=0, atol=2e-6)


def test_heads_add_to_a_logit_what_transformer_lens_attributes_to_them(pair: Pair) -> None:
    checkpoint, lens = pair
    trace, ids = traced(checkpoint, SENTENCE)
    position, token = ids.shape[1] - 1, 7
    found = attribute(trace, position, token=token).table("self_attention")
    with torch.inference_mode():
        _, cache = lens.run_with_cache(ids)
        written = cache.apply_ln_to_stack(cache.stack_head_results(layer=-1))[:, 0, position]  # [head, model]
    # TransformerLens's bridge folds neither γ nor W_U, so a head's output is multiplied by both.
    weights = checkpoint.model.decoder
    direction = weights.vocabulary_projection.weight[token] * weights.final_norm.weight
    expected = (written @ direction).numpy().reshape(found.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_patched_heads_bring_back_the_share_that_hooks_of_transformer_lens_bring_back(pair: Pair) -> None:
    checkpoint, lens = pair
    trace, _ = traced(checkpoint, SENTENCE)
    found = contrast(trace, OTHER)
    turn = found.turns[-1]
    corrupt = torch.tensor([found.corrupt["decoder"].ids])
    shares = recovered_shares(found, turn, head_places(found, "decoder"))
    clean = torch.tensor([found.clean["decoder"].ids])

    def difference(logits: torch.Tensor) -> float:
        return float(logits[0, turn.row, turn.answer] - logits[0, turn.row, turn.other])

    with torch.inference_mode():
        logits, cache = lens.run_with_cache(clean)
        at_best, at_worst = difference(logits), difference(lens(corrupt))
        for layer, head in np.ndindex(shares.shape):
            name = f"blocks.{layer}.attn.hook_z"

            def put_back(own: torch.Tensor, hook: object, head: int = head, name: str = name) -> torch.Tensor:
                own[:, :, head] = cache[name][:, :, head]
                return own

            patched = difference(lens.run_with_hooks(corrupt, fwd_hooks=[(name, put_back)]))
            expected = (patched - at_worst) / (at_best - at_worst)
            assert shares[layer, head] == pytest.approx(expected, abs=1e-3)
