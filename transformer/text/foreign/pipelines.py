"""What the tokenizer classes of Hugging Face do to a text, in the words of ``tokenizer.json``.

Every class fills the same places: a normaliser changes the text, a pre-tokenizer cuts it into words, a model cuts words
into pieces, and tokens stand before and after the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from transformer.text.foreign.language_codes import NLLB
from transformer.text.foreign.split_expressions import QWEN2

Step = dict[str, object]


@dataclass(frozen=True)
class Pipeline:
    """``names``: the tokens that a class has by default. ``model``, ``normalizer`` and ``pre_tokenizer`` are made from
    the settings (``tokenizer_config.json``), ``extras`` are further special tokens.

    ``before`` and ``after`` name the tokens around a text; ``None``: what the file's post-processor, or without a file
    the settings say (``add_bos_token``).
    """

    kind: str
    names: dict[str, object]
    model: Callable[[dict], Step] = lambda settings: {}
    normalizer: Callable[[dict], Step | None] = lambda settings: None
    pre_tokenizer: Callable[[dict], Step | None] = lambda settings: None
    before: tuple[str, ...] | None = None
    after: tuple[str, ...] | None = None
    extras: Callable[[dict], list[str]] = lambda settings: []
    vocabulary: tuple[str, ...] = field(default=())  # the files of a folder without tokenizer.json
    pieces: Callable[[list[tuple[str, float]], dict[str, str], dict], list[tuple[str, float]]] = (
        lambda pieces, names, settings: pieces
    )  # the vocabulary that is made of a SentencePiece file's
    charsmap: bool = False  # whether a text is normalised only where the file has SentencePiece's table of characters


def sequence(part: str, *steps: Step | None) -> Step:
    return {"type": "Sequence", part: [step for step in steps if step]}


def metaspace(scheme: str, *, split: bool = True) -> Step:
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split}


def byte_level(settings: dict, *, use_regex: bool = True) -> Step:
    front = bool(settings.get("add_prefix_space", False))
    return {"type": "ByteLevel", "add_prefix_space": front, "trim_offsets": True, "use_regex": use_regex}


def replace(pattern: Step, content: str) -> Step:
    return {"type": "Replace", "pattern": pattern, "content": content}


def _llama_spaces(settings: dict) -> Step:
    front = settings.get("add_prefix_space")
    scheme = "never" if front is not None and not front else "always" if settings.get("legacy", False) else "first"
    return metaspace(scheme, split=False)


def _deberta_words(settings: dict) -> Step:
    punctuation = {"type": "Punctuation", "behavior": "Isolated"} if settings.get("split_by_punct") else None
    scheme = "always" if settings.get("add_prefix_space", True) else "first"
    return sequence("pretokenizers", punctuation, metaspace(scheme))


def _words_then_spaces(settings: dict) -> Step:
    scheme = "always" if settings.get("add_prefix_space", True) else "never"
    return sequence("pretokenizers", {"type": "WhitespaceSplit"}, metaspace(scheme))


_FAIRSEQ_ORDER = ("bos_token", "pad_token", "eos_token", "unk_token")


def _fairseq_first(pieces: list[tuple[str, float]], names: dict[str, str], settings: dict) -> list[tuple[str, float]]:
    """XLM-R: fairseq's four tokens instead of SentencePiece's three, and the mask at the end."""
    first = [(names[name], 0.0) for name in _FAIRSEQ_ORDER]
    return [*first, *pieces[3:], (names["mask_token"], 0.0)]


def _fairseq_once(pieces: list[tuple[str, float]], names: dict[str, str], settings: dict) -> list[tuple[str, float]]:
    """NLLB: fairseq's four tokens, then every piece that is none of them."""
    first = {names[name]: 0.0 for name in _FAIRSEQ_ORDER}
    return list((first | {piece: score for piece, score in pieces if piece not in first}).items())


def _with_extra_ids(pieces: list[tuple[str, float]], names: dict[str, str], settings: dict) -> list[tuple[str, float]]:
    return pieces + [(f"<extra_id_{number}>", 0.0) for number in reversed(range(_extra_ids(settings)))]


_FAIRSEQ = {
    "bos_token": "<s>",
    "eos_token": "</s>",
    "sep_token": "</s>",
    "cls_token": "<s>",
    "unk_token": "<unk>",
    "pad_token": "<pad>",
    "mask_token": "<mask>",
}
_END_OF_TEXT = dict.fromkeys(("unk_token", "bos_token", "eos_token"), "<|endoftext|>")
_BERT = {
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}
_LLAMA = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
_GEMMA = {
    "unk_token": "<unk>",
    "bos_token": "<bos>",
    "eos_token": "<eos>",
    "pad_token": "<pad>",
    "mask_token": "<mask>",
}
_SUBWORDS = ("vocab.json", "merges.txt")
_NORMAL_FORM: Step = {"type": "NFC"}
_NLLB_MASK = {"content": "<mask>", "lstrip": True, "normalized": True, "special": True}

PIPELINES = {
    "GPT2Tokenizer": Pipeline("BPE", _END_OF_TEXT, pre_tokenizer=byte_level, vocabulary=_SUBWORDS),
    "RobertaTokenizer": Pipeline(
        "BPE",
        _FAIRSEQ,
        pre_tokenizer=byte_level,
        before=("cls_token",),
        after=("sep_token",),
        vocabulary=_SUBWORDS,
    ),
    "GPTNeoXTokenizer": Pipeline(
        "BPE",
        _END_OF_TEXT | {"pad_token": "<|padding|>"},
        normalizer=lambda settings: _NORMAL_FORM,
        pre_tokenizer=byte_level,
        vocabulary=_SUBWORDS,
    ),
    "Qwen2Tokenizer": Pipeline(
        "BPE",
        {"unk_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>"},
        normalizer=lambda settings: _NORMAL_FORM,
        pre_tokenizer=lambda settings: sequence(
            "pretokenizers",
            {"type": "Split", "pattern": {"Regex": QWEN2}, "behavior": "Isolated", "invert": False},
            byte_level(settings, use_regex=False),
        ),
        vocabulary=_SUBWORDS,
    ),
    "BertTokenizer": Pipeline(
        "WordPiece",
        _BERT,
        model=lambda settings: {"continuing_subword_prefix": "##", "max_input_chars_per_word": 100},
        normalizer=lambda settings: {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": settings.get("tokenize_chinese_chars", True),
            "strip_accents": settings.get("strip_accents"),
            "lowercase": settings.get("do_lower_case", True),
        },
        pre_tokenizer=lambda settings: {"type": "BertPreTokenizer"},
        before=("cls_token",),
        after=("sep_token",),
        vocabulary=("vocab.txt",),
    ),
    "LlamaTokenizer": Pipeline(
        "BPE",
        _LLAMA,
        model=lambda settings: {"fuse_unk": True, "byte_fallback": True},
        pre_tokenizer=_llama_spaces,
        vocabulary=("tokenizer.model",),
    ),
    "GemmaTokenizer": Pipeline(
        "BPE",
        _GEMMA,
        model=lambda settings: {"fuse_unk": True, "byte_fallback": True, "unk_token": True},
        normalizer=lambda settings: replace({"String": " "}, "▁"),
        pre_tokenizer=lambda settings: {
            "type": "Split",
            "pattern": {"String": " "},
            "behavior": "MergedWithPrevious",
            "invert": False,
        },
        vocabulary=("tokenizer.model",),
    ),
    "NllbTokenizer": Pipeline(
        "BPE",
        _FAIRSEQ | {"mask_token": _NLLB_MASK},
        model=lambda settings: {"fuse_unk": True, "unk_token": True},
        normalizer=lambda settings: replace({"Regex": " {2,}"}, " "),
        pre_tokenizer=lambda settings: metaspace("always"),
        extras=lambda settings: list(NLLB),
        vocabulary=("sentencepiece.bpe.model",),
        pieces=_fairseq_once,
        charsmap=True,
    ),
    "T5Tokenizer": Pipeline(
        "Unigram",
        {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"},
        model=lambda settings: {"unk_id": 2},
        pre_tokenizer=lambda settings: _words_then_spaces({}),
        before=(),
        after=("eos_token",),
        extras=lambda settings: [f"<extra_id_{number}>" for number in range(_extra_ids(settings))],
        vocabulary=("spiece.model",),
        pieces=_with_extra_ids,
        charsmap=True,
    ),
    "XLMRobertaTokenizer": Pipeline(
        "Unigram",
        _FAIRSEQ,
        model=lambda settings: {"unk_id": 3},
        pre_tokenizer=_words_then_spaces,
        before=("bos_token",),
        after=("eos_token",),
        vocabulary=("sentencepiece.bpe.model",),
        pieces=_fairseq_first,
        charsmap=True,
    ),
    "DebertaV2Tokenizer": Pipeline(
        "Unigram",
        _BERT | {"bos_token": "[CLS]", "eos_token": "[SEP]"},
        normalizer=lambda settings: sequence(
            "normalizers",
            {"type": "Lowercase"} if settings.get("do_lower_case") else None,
            replace({"Regex": r"\s{2,}|[\n\r\t]"}, " "),
            _NORMAL_FORM,
            {"type": "Strip", "strip_left": False, "strip_right": True},
        ),
        pre_tokenizer=_deberta_words,
        before=("cls_token",),
        after=("sep_token",),
        vocabulary=("spm.model",),
    ),
}


def _extra_ids(settings: dict) -> int:
    number = settings.get("extra_ids", 100)
    return number if type(number) is int and 0 <= number <= 10_000 else 100
