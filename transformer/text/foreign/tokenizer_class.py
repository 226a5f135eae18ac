"""Which tokenizer class Hugging Face opens a folder with: it decides what happens to a text, not ``tokenizer.json``.

``transformers`` 5 keeps only the vocabulary of a ``tokenizer.json`` where the class is one that it knows, and builds
the rest by that class; other files are taken as they are (``FROM_FILE``). The class is named by
``tokenizer_config.json``, by ``config.json``, or follows from the model type.
"""

from __future__ import annotations

from pathlib import Path

FROM_FILE = "TokenizersBackend"

_OF_MODEL_TYPE = {
    "bart": "RobertaTokenizer",
    "bert": "BertTokenizer",
    "deberta-v2": "DebertaV2Tokenizer",
    "distilbert": "BertTokenizer",
    "gemma": "GemmaTokenizer",
    "gemma2": "GemmaTokenizer",
    "gemma3": "GemmaTokenizer",
    "gemma3_text": "GemmaTokenizer",
    "gpt2": "GPT2Tokenizer",
    "gpt_neox": "GPTNeoXTokenizer",
    "m2m_100": "M2M100Tokenizer",
    "marian": "MarianTokenizer",
    "mistral": FROM_FILE,
    "mt5": "T5Tokenizer",
    "nllb": "NllbTokenizer",
    "qwen2": "Qwen2Tokenizer",
    "qwen3": "Qwen2Tokenizer",
    "roberta": "RobertaTokenizer",
    "t5": "T5Tokenizer",
    "umt5": FROM_FILE,
    "xlm-roberta": "XLMRobertaTokenizer",
}
_SAME = {
    "BartTokenizer": "RobertaTokenizer",
    "DistilBertTokenizer": "BertTokenizer",
    "PreTrainedTokenizer": FROM_FILE,
    "PreTrainedTokenizerFast": FROM_FILE,
    "PythonBackend": FROM_FILE,
}
_OFTEN_WRONG = {"qwen2"}  # model types whose folders often name a wrong class


def tokenizer_class(folder: Path, config: dict, settings: dict) -> str:
    """``settings``: the content of ``tokenizer_config.json``."""
    model_type = config.get("model_type")
    registered = _OF_MODEL_TYPE.get(model_type)
    named = settings.get("tokenizer_class") or config.get("tokenizer_class")
    if not isinstance(named, str):
        return registered or FROM_FILE
    named = named.removesuffix("Fast") if named != "PreTrainedTokenizerFast" else FROM_FILE
    if (
        named == "LlamaTokenizer"
        and model_type not in _OFTEN_WRONG
        and (folder / "tokenizer.json").is_file()
        and b'"ByteLevel"' in (folder / "tokenizer.json").read_bytes()
    ):
        return FROM_FILE  # Llama 3 names the class of Llama 2
    if registered is None or named == registered:
        return _SAME.get(named, named)
    if registered == FROM_FILE:
        return FROM_FILE
    return registered if model_type in _OFTEN_WRONG else _SAME.get(named, named)
