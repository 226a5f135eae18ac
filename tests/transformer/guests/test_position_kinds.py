"""How guests encode positions: what was measured against what the code of each family does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.nights import by_day
from tests.transformer.guests import test_types_in_no_list as no_list
from tests.transformer.guests.tiny_guests import ENCODERS, GUESTS, guest_checkpoint
from tests.transformer.guests.tiny_image_guests import IMAGE_GUESTS, image_checkpoint
from transformer import CheckpointError, Greedy, load, trace
from transformer.errors import NotExposedError
from transformer.guests import position_kinds
from transformer.layers.positional_encodings import reordered_positions, without_positions
from transformer.positions import alibi_slopes
from transformer.probes import record

TEXT = "The cat sat on the mat because it was tired."
RELATIVE_ONLY = no_list.IMAGES["beit"]
ROFORMER = ("RoFormerForMaskedLM", {**no_list.GROUPED, "embedding_size": 32})
_GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
MORE = {
    **no_list.TEXTS,
    "roformer": ROFORMER,
    "openai-gpt": ("OpenAIGPTLMHeadModel", _GPT),  # masks with −10,000
    "mpt": ("MptForCausalLM", {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 64}),
    "ctrl": ("CTRLLMHeadModel", {**_GPT, "dff": 48}),  # adds sines that no module holds
}
# From the sources of transformers 5.24: the table of positions, ``apply_rotary_pos_emb``, or the bias of the scores.
TEXTS = {
    **dict.fromkeys(("opt", "gpt_bigcode", "gpt_neo"), ("learned",)),
    **dict.fromkeys(("roberta", "distilbert", "xlm-roberta", "camembert", "electra"), ("learned",)),
    **dict.fromkeys(("bart", "mbart", "blenderbot-small"), ("learned",)),
    **dict.fromkeys(("phi", "phi3", "olmo", "olmo2", "olmo3", "smollm3", "stablelm", "starcoder2"), ("rotary",)),
    **dict.fromkeys(("cohere", "cohere2", "granite", "glm", "glm4", "mixtral", "qwen2_moe", "qwen3_moe"), ("rotary",)),
    **dict.fromkeys(("gpt_oss", "gptj", "codegen", "falcon", "persimmon", "nemotron", "modernbert"), ("rotary",)),
    **dict.fromkeys(("doge", "dots1", "roformer"), ("rotary",)),
    **dict.fromkeys(("m2m_100", "pegasus"), ("sinusoidal",)),
    "bloom": ("alibi",),
    "mpt": ("alibi",),
    "openai-gpt": ("learned",),
    "ctrl": ("unknown",),
    "mt5": ("relative",),
    "mpnet": ("learned", "relative"),
}
IMAGES = dict.fromkeys(("vit", "dinov2", "dinov2_with_registers", "siglip", "clip", "deit"), ("learned",))
BY_DAY = ("roformer", "pegasus", "bloom", "mpnet", "gpt_oss", "vit", "openai-gpt")


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable:
    """Return ``opened("phi")``, which gives the guest as a checkpoint."""
    for kind, made in MORE.items():
        monkeypatch.setitem(GUESTS, kind, made)
    monkeypatch.setitem(ENCODERS, "roformer", ROFORMER)

    def get(kind: str, **changes: object):
        write = image_checkpoint if kind in IMAGE_GUESTS else guest_checkpoint
        return load(write(kind, tmp_path, **changes))

    return get


@pytest.mark.parametrize("kind", by_day([*TEXTS, *IMAGES], BY_DAY))
def test_the_kind_of_positions_is_that_of_the_code(opened: Callable, kind: str) -> None:
    config = opened(kind).config
    expected = {**TEXTS, **IMAGES}[kind]
    for stack in ("encoder", "decoder"):
        if config.has_encoder if stack == "encoder" else config.has_decoder:
            assert config.kinds_in(stack) == expected


def test_a_class_that_attends_to_later_tokens_is_no_decoder(opened: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    made = ("XLMWithLMHeadModel", {"emb_dim": 32, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 64})
    monkeypatch.setitem(GUESTS, "xlm", made)
    with pytest.raises(CheckpointError, match="attends to later tokens"):
        opened("xlm")


def test_the_table_of_truth_has_every_guest() -> None:
    assert TEXTS.keys() == GUESTS.keys() | MORE.keys() and IMAGES.keys() == IMAGE_GUESTS.keys()


def test_the_longest_text_is_read_under_each_name_for_it(opened: Callable) -> None:
    assert opened("mpt").config.max_length == 64


def test_a_bias_in_rows_and_columns_is_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, fields = RELATIVE_ONLY
    monkeypatch.setitem(IMAGE_GUESTS, "beit", (name, fields, no_list.PROCESSOR, ("[CLS]",)))
    assert load(image_checkpoint("beit", tmp_path)).config.kinds_in("encoder") == ("relative",)


def test_layers_that_do_not_rotate_are_known(opened: Callable) -> None:
    checkpoint = opened("smollm3", num_hidden_layers=4)  # its fourth layer has no positions
    layers = checkpoint.model.decoder.layers
    assert [layer.self_attention.rotary is None for layer in layers] == [False, False, False, True]


def test_the_sines_of_a_guest_are_its_own_table(opened: Callable) -> None:
    run = trace(opened("m2m_100"), TEXT, target="It slept.")
    encoding = run.checkpoint.model.decoder.embedding.position_encoding
    added = run.values("decoder.embedding.position")
    np.testing.assert_array_equal(encoding(len(added))[0].numpy(), added)
    place, half = torch.arange(len(added))[:, None] + encoding.offset, torch.arange(16)
    angle = place * 10_000 ** (-half / encoding.steps)
    np.testing.assert_allclose(torch.cat((angle.sin(), angle.cos()), dim=1), added, atol=1e-5)
    token, total = (run.values(f"decoder.embedding.{part}") for part in ("token", "sum"))
    np.testing.assert_allclose(token + added, total, atol=1e-5)


def test_without_alibi_the_scores_lack_its_bias_and_nothing_else(opened: Callable) -> None:
    checkpoint, name = opened("bloom"), "decoder.layers.0.self_attention.{}"
    ids = [[7] * 9]
    with torch.inference_mode():
        found = []
        for edits in ((), without_positions(checkpoint.model, "decoder")):
            with record(edits) as recording:
                checkpoint.model(torch.tensor(ids))
            found.append({part: recording.tensors[name.format(part)][0] for part in ("scores", "weights")})
    row = (found[0]["scores"] - found[1]["scores"])[:, 8]
    np.testing.assert_allclose(row.numpy(), -alibi_slopes(4).numpy()[:, None] * np.arange(9)[::-1], atol=1e-5)
    np.testing.assert_allclose(found[1]["weights"][:, 8].numpy(), 1 / 9, atol=1e-5)  # the same token nine times


def test_positions_of_several_kinds_are_not_half_removed(opened: Callable) -> None:
    model = opened("mpnet").model
    for change in (lambda: without_positions(model, "encoder"), lambda: reordered_positions(model, "encoder", (1, 0))):
        with pytest.raises(NotExposedError, match="several kinds"):
            change()


def test_what_no_measurement_explains_is_unknown(opened: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if Bloom's slopes were not ALiBi's: a fixed straight line is no trained bias either."""
    own = position_kinds.alibi_slopes
    monkeypatch.setattr(position_kinds, "alibi_slopes", lambda n_heads: 2 * own(n_heads))
    checkpoint = opened("bloom")
    assert checkpoint.config.positions == "unknown"
    with pytest.raises(NotExposedError, match="how it encodes positions"):
        without_positions(checkpoint.model, "decoder")
    assert trace(checkpoint, TEXT, strategy=Greedy(1)).stacks == ("decoder",)
