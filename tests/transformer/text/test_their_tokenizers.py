"""Every family with its Hugging Face tokenizer class, trained on a few sentences: ids, then logits."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers

from tests.transformer.guests.hugging_face import build
from tests.transformer.text.foreign_folders import SENTENCES, TEXTS
from transformer import CheckpointError, decode, load, trace
from transformer.files.languages import with_languages
from transformer.runs.decoding_strategies import Greedy

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


@pytest.mark.slow
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


def test_nllb_writes_behind_its_language_also_with_legacy_targets(tmp_path: Path) -> None:
    """A given output then has no language token, like their labels; a generated one has it."""
    write("m2m100", tmp_path)
    tokenizer = transformers.NllbTokenizer.from_pretrained(tmp_path, legacy_behaviour=True, src_lang="eng_Latn")
    tokenizer.save_pretrained(tmp_path)
    checkpoint = with_languages(load(tmp_path), source="eng_Latn", target="fra_Latn")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    theirs.tgt_lang = "fra_Latn"
    asked = theirs("The cat sat.", return_tensors="pt")
    language = theirs.convert_tokens_to_ids("fra_Latn")
    model = build("m2m100").__class__.from_pretrained(tmp_path).eval()
    expected = model.generate(**asked, forced_bos_token_id=language, num_beams=1, do_sample=False, max_new_tokens=8)[0]
    found = decode(checkpoint, "The cat sat.", Greedy(max_new_tokens=7))
    assert list(checkpoint.framing.answer) == expected[:2].tolist() and language == expected[1]
    assert list(found.tokens.ids) == expected[2:].tolist()
    given = trace(checkpoint, "The cat sat.", "Le chat dort.")
    labels = theirs(text_target="Le chat dort.").input_ids
    assert labels[-1] == language and list(given.prediction.ids) == labels[:-1]


def test_an_m2m100_that_begins_with_padding_is_refused(tmp_path: Path) -> None:
    """Hugging Face does not count padding as a position, but ignores that when it generates with a cache."""
    write("m2m100", tmp_path)
    model = build("m2m100").__class__.from_pretrained(tmp_path, decoder_start_token_id=1).eval()
    model.config.decoder_start_token_id = model.generation_config.decoder_start_token_id = model.config.pad_token_id
    source, target = torch.tensor([[5, 6, 2]]), torch.tensor([[model.config.pad_token_id, 7, 8]])
    with torch.no_grad():
        whole = model(input_ids=source, decoder_input_ids=target).logits[0, -1]
        first = model(input_ids=source, decoder_input_ids=target[:, :2], use_cache=True)
        step = model(
            encoder_outputs=(first.encoder_last_hidden_state,),
            decoder_input_ids=target[:, 2:],
            past_key_values=first.past_key_values,
        ).logits[0, -1]
    assert (whole - step).abs().max() > 1e-3
    model.save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match="begins with the token 1, which is also the padding"):
        load(tmp_path)
