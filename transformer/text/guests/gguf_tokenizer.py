"""The tokenizer of a GGUF file in the form of ``tokenizer.json``.

A GGUF file names how a text is split into words (``tokenizer.ggml.pre``) instead of describing it. Each name is
translated into the splitting that Hugging Face's code does for the original model.
"""

from __future__ import annotations

from base64 import b64encode

from transformer.disk.gguf_file import GgufFile

_NORMAL, _UNKNOWN, _CONTROL, _GIVEN = 1, 2, 3, 4  # types of entries
_GPT2 = ("gpt-2", "phi-2", "jina-es", "jina-de", "roberta-bpe", "mpt", "olmo", "jais")
_DIGITS = ("smollm", "starcoder", "refact", "command-r")
_LLAMA3 = ("llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral")
_QWEN2 = ("qwen2", "stablelm2", "deepseek-r1-qwen")
_OLD = {"llama": "llama-bpe", "qwen2": "qwen2", "qwen3": "qwen2"}  # what files that predate the names are read as
_ENGLISH = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_NAMED = {
    "bos_token": ("bos_token_id", "cls_token_id"),
    "eos_token": ("eos_token_id",),
    "unk_token": ("unknown_token_id",),
    "pad_token": ("padding_token_id",),
    "sep_token": ("seperator_token_id", "separator_token_id"),
    "cls_token": ("cls_token_id",),
    "mask_token": ("mask_token_id",),
}
_USUAL = {  # defaults: the ids of SentencePiece, and whether a text has a first and a last token
    "llama": ({"bos_token": 1, "eos_token": 2, "unk_token": 0}, True, False),
    "gpt2": ({}, False, False),
    "t5": ({"eos_token": 1, "unk_token": 2, "pad_token": 0}, False, True),
    "bert": ({}, True, True),
}

Step = dict[str, object]


class _Stored:
    """The tokenizer as a GGUF file stores it.

    Attributes:
        tokens: The entries by id, in Hugging Face's notation.
        types: The type of each entry.
        named: Special tokens by their role.
        front: Whether a text begins with a space that nobody typed.
    """

    def __init__(self, file: GgufFile) -> None:
        self.file, self.architecture = file, str(file.get("general.architecture"))
        self.kind, tokens = self("model"), self("tokens")
        if self.kind not in _USUAL or not isinstance(tokens, list) or not all(isinstance(each, str) for each in tokens):
            raise ValueError(f"its tokenizer is of the kind {self.kind!r}; {', '.join(_USUAL)} are read")
        self.types = self("token_type") or [_NORMAL] * len(tokens)
        if not isinstance(self.types, list) or len(self.types) != len(tokens):
            raise ValueError("its tokenizer has not one type for each entry")
        self.named = {}
        for name, keys in _NAMED.items():
            stored = (found for key in keys if (found := self(key)) is not None)
            id = next(stored, _USUAL[self.kind][0].get(name))
            if isinstance(id, int) and 0 <= id < len(tokens):
                self.named[name] = tokens[id]
        if self.kind == "bert":
            tokens = [_word_piece(token, code) for token, code in zip(tokens, self.types, strict=True)]
        self.tokens, self.front = tokens, bool(self("add_space_prefix", self.kind in ("llama", "t5")))

    def __call__(self, name: str, default: object = None) -> object:
        return self.file.get(f"tokenizer.ggml.{name}", default)

    def scores(self) -> list[float]:
        """Return one score for each entry."""
        scores = self("scores")
        if not isinstance(scores, list) or len(scores) != len(self.tokens):
            raise ValueError("its tokenizer has not one score for each entry")
        return scores


def tokenizer_of(file: GgufFile) -> tuple[dict, dict[str, str]]:
    """Return the content of a ``tokenizer.json`` and the names of the special tokens by their role.

    Raises ``ValueError`` for an unknown kind of tokenizer or word splitting.
    """
    stored = _Stored(file)
    build = {"gpt2": _byte_level, "llama": _sentencepiece, "t5": _unigram, "bert": _wordpiece}[stored.kind]
    steps, model = build(stored)
    _, *around = _USUAL[stored.kind]
    if stored.kind == "gpt2" and stored("pre", _OLD.get(stored.architecture)) in _LLAMA3:
        around[0] = True
    begins, ends = (
        stored(f"add_{name}_token", usual) and stored.named.get(f"{name}_token")
        for name, usual in zip(("bos", "eos"), around, strict=True)
    )
    if stored.kind == "bert":
        ends = stored.named.get("sep_token", ends)
    added = [
        {"id": id, "content": token, "special": code in (_CONTROL, _UNKNOWN), "normalized": False}
        | dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
        for id, (token, code) in enumerate(zip(stored.tokens, stored.types, strict=True))
        if code in (_CONTROL, _UNKNOWN, _GIVEN)
    ]
    content = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None}
    content |= {"pre_tokenizer": None, "post_processor": _template(stored.tokens, begins, ends), "decoder": None}
    return content | steps | {"model": model}, stored.named


def _template(tokens: list[str], begins: object, ends: object) -> Step | None:
    around = [token for token in (begins, ends) if token]
    if not around:
        return None
    special = [{"SpecialToken": {"id": token, "type_id": 0}} for token in around]
    text = [{"Sequence": {"id": "A", "type_id": 0}}]
    single = [*special[: bool(begins)], *text, *special[bool(begins) :]]
    ids = {token: {"id": token, "ids": [tokens.index(token)], "tokens": [token]} for token in around}
    return {"type": "TemplateProcessing", "single": single, "pair": [*text, *text], "special_tokens": ids}


def _sequence(name: str, *steps: Step) -> Step:
    return {"type": "Sequence", name: list(steps)}


def _split(expression: str) -> Step:
    return {"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": False}


def _byte_level(stored: _Stored) -> tuple[dict, dict]:
    name = stored("pre")
    if name in (None, "default"):
        name = _OLD.get(stored.architecture, "gpt-2")
    whole = {"type": "ByteLevel", "add_prefix_space": stored.front, "trim_offsets": True, "use_regex": True}
    inner = whole | {"use_regex": False}
    if name in _GPT2:
        cut = whole
    elif name in _DIGITS:
        cut = _sequence("pretokenizers", {"type": "Digits", "individual_digits": True}, whole)
    elif name in (*_LLAMA3, *_QWEN2):
        digits = "{1,3}" if name in _LLAMA3 else ""
        cut = _sequence("pretokenizers", _split(_ENGLISH + digits + _REST), inner)
    else:
        known = ", ".join((*_GPT2, *_DIGITS, *_LLAMA3, *_QWEN2))
        raise ValueError(f"its tokenizer cuts words as {name!r}; known ways are {known}")
    normal = {"type": "NFC"} if name in _QWEN2 or stored.architecture == "gptneox" else None
    merges = [merge.split(" ") for merge in stored("merges") or []]
    model = {"type": "BPE", "vocab": _by_id(stored.tokens), "merges": merges, "ignore_merges": name in _LLAMA3}
    return {"pre_tokenizer": cut, "normalizer": normal}, model


def _sentencepiece(stored: _Stored) -> tuple[dict, dict]:
    """Return byte-pair encoding by scores: the adjacent pair with the highest score is merged first."""
    rows = zip(stored.tokens, stored.scores(), stored.types, strict=True)
    known = {token: score for token, score, code in rows if code == _NORMAL}
    merges = [
        [piece[:cut], piece[cut:]]
        for piece in sorted(known, key=lambda piece: -known[piece])
        for cut in range(1, len(piece))
        if piece[:cut] in known and piece[cut:] in known
    ]
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    steps = [{"type": "Prepend", "prepend": "▁"}, spaces] if stored.front else [spaces]
    model = {"type": "BPE", "vocab": _by_id(stored.tokens), "merges": merges, "byte_fallback": True, "fuse_unk": True}
    return {"normalizer": _sequence("normalizers", *steps)}, model | {"unk_token": stored.named.get("unk_token")}


def _unigram(stored: _Stored) -> tuple[dict, dict]:
    table, rows = stored("precompiled_charsmap"), zip(stored.tokens, stored.scores(), strict=True)
    normal = {"type": "Precompiled", "precompiled_charsmap": b64encode(bytes(table)).decode()} if table else None
    metaspace = {
        "type": "Metaspace",
        "replacement": "▁",
        "prepend_scheme": "always" if stored.front else "never",
        "split": True,
    }
    cut = _sequence("pretokenizers", {"type": "WhitespaceSplit"}, metaspace)
    unknown = stored.tokens.index(stored.named["unk_token"])
    model = {"type": "Unigram", "vocab": [list(row) for row in rows], "unk_id": unknown}
    return {"normalizer": normal, "pre_tokenizer": cut}, model


def _wordpiece(stored: _Stored) -> tuple[dict, dict]:
    normal = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "lowercase": True}
    model = {"type": "WordPiece", "vocab": _by_id(stored.tokens), "unk_token": stored.named.get("unk_token", "[UNK]")}
    model |= {"continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    return {"normalizer": normal | {"strip_accents": None}, "pre_tokenizer": {"type": "BertPreTokenizer"}}, model


def _word_piece(token: str, code: int) -> str:
    """Return BERT's notation: it marks continuations (##ing), GGUF the beginnings of words (▁the)."""
    if code != _NORMAL or (token.startswith("[") and token.endswith("]")):
        return token
    return token[1:] if token.startswith("▁") else f"##{token}"


def _by_id(tokens: list[str]) -> dict[str, int]:
    """Return ids by entry; the second of two equal entries gets a name that no text contains."""
    found: dict[str, int] = {}
    for id, token in enumerate(tokens):
        found[token if token not in found else f"{token}\uffff{id}"] = id
    return found
