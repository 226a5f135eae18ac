"""Every family with the tokenizer class that Hugging Face gives it, trained on a few sentences: ids, then logits."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.transformer.families.hugging_face import build
from tests.transformer.text.foreign_folders import SENTENCES, TEXTS
from transformer import load, trace

transformers = pytest.importorskip("transformers")

# The case of a model and the class of its tokenizer
PAIRS = {
    "gpt2": "GPT2Tokenizer",
    "bert": "BertTokenizer",
    "roberta": "RobertaTokenizer",
    "distilbert, classes": "DistilBertTokenizer",
    "gpt-neox": "GPTNeoXTokenizer",
    "llama": "LlamaTokenizer",
    "mistral": "LlamaTokenizer",
    "qwen2": "Qwen2Tokenizer",
    "qwen3": "Qwen2Tokenizer",
    "gemma": "GemmaTokenizer",
    "gemma 2": "GemmaTokenizer",
    "gemma 3": "GemmaTokenizer",
    "bart": "BartTokenizer",
    "t5": "T5Tokenizer",
    "deberta-v2": "DebertaV2Tokenizer",
    "m2m100": "NllbTokenizer",
}
ENCODER_DECODERS = ("bart", "t5", "m2m100")


def write(case: str, folder: Path) -> None:
    tokenizer = getattr(transformers, PAIRS[case])().train_new_from_iterator(SENTENCES, 400)
    special = {f"{job}_token_id": getattr(tokenizer, f"{job}_token_id") for job in ("bos", "eos", "pad")}
    if case not in (*ENCODER_DECODERS, "gemma", "gemma 2", "gemma 3") and "bert" not in case:
        del special["pad_token_id"]
    if case in ("bart", "m2m100"):
        special["decoder_start_token_id"] = tokenizer.eos_token_id
    special = {name: id for name, id in special.items() if id is not None}
    tokenizer.save_pretrained(folder)
    build(case, vocab_size=len(tokenizer) + 3, **special).save_pretrained(folder)  # tables are often longer


@pytest.mark.parametrize("case", PAIRS)
def test_ids_and_logits_are_theirs(case: str, tmp_path: Path) -> None:
    write(case, tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    checkpoint = load(tmp_path)
    for text in TEXTS:
        ids = [*checkpoint.framing.before, *checkpoint.tokenizer.encode(text), *checkpoint.framing.after]
        assert ids == theirs(text).input_ids, text
    config = checkpoint.config
    found = trace(checkpoint, "The cat sat on the mat.", "Le chat est fatigué." if config.has_decoder else None)
    asked = {"input_ids": torch.tensor([(found.source or found.target).ids])}
    if case in ENCODER_DECODERS:
        assert list(found.prediction.ids) == theirs(text_target="Le chat est fatigué.").input_ids
        asked["decoder_input_ids"] = torch.tensor([found.target.ids])
    architecture = build(case).__class__
    model = architecture.from_pretrained(tmp_path, attn_implementation="eager").eval()
    with torch.no_grad():
        expected = model(**asked).logits[0]
    name = "classifier.logits" if config.n_classes else f"{found.stacks[-1]}.logits"
    assert (torch.tensor(found.values(name)) - expected).abs().max() < 2e-5
