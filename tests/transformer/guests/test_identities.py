"""Sums that hold in every guest, compared with its own code; docs/identities.md holds the results.

``python -m tests.transformer.guests.test_identities`` writes the table.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.nights import by_day
from tests.transformer.guests import tiny_guests
from tests.transformer.guests.tiny_guests import _DECODER, _GROUPED, _SIZES, _T5, guest_checkpoint
from tests.transformer.guests.tiny_image_guests import IMAGE_GUESTS, image_checkpoint
from transformer import Checkpoint, load
from transformer.errors import NotExposedError
from transformer.guests.agreement import _their_pass
from transformer.guests.trial_pass import trial_inputs
from transformer.probes import record

pytest.importorskip("transformers")
TABLE = Path(__file__).resolve().parents[3] / "docs" / "identities.md"
COLUMNS = ("maps", "streams", "values", "sums", "logits")
_HEADS = {**_GROUPED, "head_dim": 8}
_RELATIVE = {**_SIZES, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
_GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
_EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
_MAMBA = {"mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_state": 8, "mamba_chunk_size": 8}
ENCODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("BertForMaskedLM", _SIZES),
    "big_bird": ("BigBirdForMaskedLM", {**_SIZES, "attention_type": "original_full"}),
    "deberta": ("DebertaForMaskedLM", _RELATIVE),
    "deberta-v2": ("DebertaV2ForMaskedLM", _RELATIVE),
    "roformer": ("RoFormerForMaskedLM", {**_SIZES, "embedding_size": 32}),
    "convbert": ("ConvBertForMaskedLM", {**_SIZES, "embedding_size": 32}),
    "rembert": ("RemBertForMaskedLM", {**_SIZES, "input_embedding_size": 16, "output_embedding_size": 24}),
    "xmod": (
        "XmodForMaskedLM",
        {**_SIZES, "max_position_embeddings": 66, "languages": ["en_XX"], "default_language": "en_XX"},
    ),
    "esm": ("EsmForMaskedLM", {**_SIZES, "max_position_embeddings": 66, "position_embedding_type": "rotary"}),
    "eurobert": ("EuroBertForMaskedLM", _SIZES),
}
DECODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2LMHeadModel", _GPT),
    "llama": ("LlamaForCausalLM", _GROUPED),
    "qwen2": ("Qwen2ForCausalLM", _GROUPED),
    "qwen3": ("Qwen3ForCausalLM", _HEADS),
    "gemma": ("GemmaForCausalLM", _HEADS),
    "gemma2": ("Gemma2ForCausalLM", {**_HEADS, "sliding_window": 5}),
    "gemma3_text": ("Gemma3ForCausalLM", {**_HEADS, "sliding_window": 5}),
    "mistral": ("MistralForCausalLM", {**_GROUPED, "sliding_window": 5}),
    "gpt_neox": ("GPTNeoXForCausalLM", _SIZES),
    "doge": ("DogeForCausalLM", _HEADS),
    "gpt_neox_japanese": ("GPTNeoXJapaneseForCausalLM", {**_SIZES, "intermediate_multiple_size": 2}),
    "bloom, stream after the norm": (
        "BloomForCausalLM",
        {"hidden_size": 32, "n_layer": 2, "n_head": 4, "apply_residual_connection_post_layernorm": True},
    ),
    "granitemoe": ("GraniteMoeForCausalLM", {**_GROUPED, **_EXPERTS}),
    "granitemoeshared": (
        "GraniteMoeSharedForCausalLM",
        {**_GROUPED, **_EXPERTS, "shared_intermediate_size": 24, "residual_multiplier": 0.5},
    ),
    "falcon_h1": ("FalconH1ForCausalLM", {**_GROUPED, **_MAMBA}),
    "mpt": ("MptForCausalLM", {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 64}),
    "biogpt": ("BioGptForCausalLM", _SIZES),
    "ctrl": ("CTRLLMHeadModel", {**_GPT, "dff": 48}),
    "openai-gpt": ("OpenAIGPTLMHeadModel", _GPT),
    "exaone4": ("Exaone4ForCausalLM", {**_GROUPED, "sliding_window": 5}),
    "helium": ("HeliumForCausalLM", _HEADS),
    "apertus": ("ApertusForCausalLM", _GROUPED),
}
WRITERS: dict[str, tuple[str, dict[str, Any]]] = {
    "t5": ("T5ForConditionalGeneration", _T5),
    "umt5": ("UMT5ForConditionalGeneration", _T5),
    "switch_transformers": (
        "SwitchTransformersForConditionalGeneration",
        {**_T5, "num_experts": 4, "num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1},
    ),
    "plbart": ("PLBartForConditionalGeneration", _DECODER),
    "nllb-moe": (
        "NllbMoeForConditionalGeneration",
        {**_DECODER, "num_experts": 4, "encoder_sparse_step": 2, "decoder_sparse_step": 2},
    ),
}
MORE = {**ENCODERS, **DECODERS, **WRITERS}
TYPES = (*tiny_guests.GUESTS, *MORE, *IMAGE_GUESTS)
BY_DAY = ("phi", "bloom", "gpt_oss", "modernbert", "mbart", "deberta", "gemma3_text", "granitemoeshared", "t5", "vit")


def equals_theirs(ours: Tensor, theirs: Tensor) -> bool:
    """Whether two tensors of the same shape differ by rounding only."""
    bound = 2e-5 * float(theirs.abs().max()) + 1e-7
    return ours.shape == theirs.shape and float((ours - theirs).abs().max()) <= bound


def write(kind: str, folder: Path) -> Path:
    """Write the tiny checkpoint of a type."""
    if kind in IMAGE_GUESTS:
        return image_checkpoint(kind, folder)
    with pytest.MonkeyPatch.context() as patch:
        for kinds, more in (
            (tiny_guests.ENCODERS, ENCODERS),
            (tiny_guests.WRITERS, WRITERS),
            (tiny_guests.GUESTS, MORE),
        ):
            for name, made in more.items():
                patch.setitem(kinds, name, made)
        return guest_checkpoint(kind, folder)


def identities(checkpoint: Checkpoint) -> dict[str, str]:
    """Return "●" for each identity that holds on recorded numbers, or why a guest does not show its parts."""
    model: Any = checkpoint.model
    given = trial_inputs(model.config, model.network)[-1]
    theirs = _their_pass(model, given)
    with torch.inference_mode(), record() as recording:
        ends = model.stack_outputs(given)
        logits = model.read_out(list(ends.values())[-1], given.get("input_ids", torch.zeros(1, 1, dtype=torch.long)))
    seen, found = recording.tensors, dict.fromkeys(COLUMNS, "●")
    for stack, end in ends.items():
        front = f"{stack}_" if len(ends) == 2 else ""
        layers = range(len(getattr(model, stack).layers))
        for layer in layers:
            name = f"{stack}.layers.{layer}"
            kinds = {"self": f"{front}attentions"} | ({"cross": "cross_attentions"} if front == "decoder_" else {})
            for kind, maps in kinds.items():
                weights, value, context = (
                    seen[f"{name}.{kind}_attention.{e}"] for e in ("weights", "value", "context")
                )
                assert equals_theirs(weights, theirs[maps][layer])
                assert equals_theirs(weights @ value, context)
            assert equals_theirs(seen[f"{name}.residual.in"], theirs[f"{front}hidden_states"][layer])
            found["sums"] = _sum_of(model, seen, name, kinds) if found["sums"] == "●" else found["sums"]
        last = seen[f"{stack}.layers.{len(layers) - 1}.residual.out"]
        states = theirs[f"{front}hidden_states"]
        assert equals_theirs(last, states[-1]) or equals_theirs(end, states[-1])
    found["logits"] = "–" if model.config.pooling else _logits_of(model, stack, last, logits)
    return found


def _sum_of(model: Any, seen: dict[str, Tensor], layer: str, kinds: dict[str, str]) -> str:
    """Check input + attention (+ cross-attention) + feed-forward = output for one layer."""
    updates = [f"{layer}.{kind}_attention" for kind in kinds] + [f"{layer}.feed_forward"]
    stages = [f"{layer}.residual.after_{kind}_attention" for kind in kinds] + [f"{layer}.residual.out"]
    if (why := model.not_exposed(stages[0])) is not None:
        return _reason(why)
    total = seen[f"{layer}.residual.in"]
    for update, stage in zip(updates, stages, strict=True):
        normed = f"{update}_output_norm.output"
        after = total + seen[normed if normed in seen else f"{update}.output"]
        if model.config.norm == "post":
            assert equals_theirs(seen[f"{update}_norm.input"], after)
            assert equals_theirs(seen[f"{update}_norm.output"], seen[stage])
        else:
            assert equals_theirs(after, seen[stage])
        total = seen[stage]
    return "●"


def _logits_of(model: Any, stack: str, last: Tensor, logits: Tensor) -> str:
    """Check that the described norm and head compute the logits from the output of the last layer."""
    described = getattr(model, stack)
    try:
        with torch.inference_mode():
            final = last if described.final_norm is None else described.final_norm(last)
            head = model.classifier if model.config.n_classes else described.vocabulary_projection
            shown = head(final)
    except NotExposedError as error:
        return _reason(error)
    assert equals_theirs(shown, logits)
    return "●"


def _reason(error: Exception) -> str:
    return str(error).split("does not expose ")[1].removesuffix(".")


def table_of(found: dict[str, dict[str, str]]) -> Iterator[str]:
    """Yield the lines of the table, with one letter per reason."""
    reasons = sorted({said for row in found.values() for said in row.values() if len(said) > 1})
    letters = {said: "abcdefghijklmnopqrstuvwxyz"[place] for place, said in enumerate(reasons)}
    yield f"| `model_type` | {' | '.join(COLUMNS)} |"
    yield "|---|" + ":-:|" * len(COLUMNS)
    for kind, row in found.items():
        yield f"| `{kind}` | {' | '.join(letters.get(row[column], row[column]) for column in COLUMNS)} |"
    yield ""
    yield from (f"- {letter}: {said}." for said, letter in letters.items())


@pytest.mark.parametrize("kind", by_day(TYPES, BY_DAY))
def test_what_is_recorded_adds_up_as_in_its_own_code(kind: str, tmp_path: Path) -> None:
    found = identities(load(write(kind, tmp_path)))
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    reasons = {line[2]: line[5:].removesuffix(".") for line in lines if line.startswith("- ")}
    row = next(line for line in lines if line.startswith(f"| `{kind}` |"))
    documented = [reasons.get(cell.strip(), cell.strip()) for cell in row.split("|")[2:-1]]
    assert dict(zip(COLUMNS, documented, strict=True)) == found


def test_the_table_has_every_type() -> None:
    rows = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")][1:]
    assert [row.split("`")[1] for row in rows] == list(TYPES)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        rows = {kind: identities(load(write(kind, Path(temporary)))) for kind in TYPES}
    before = TABLE.read_text(encoding="utf-8").split("| `model_type`")[0]
    TABLE.write_text(before + "\n".join(table_of(rows)) + "\n", encoding="utf-8")
    sys.exit(0)
