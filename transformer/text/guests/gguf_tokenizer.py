"""The tokenizer of a GGUF file in the form of ``tokenizer.json``.

A GGUF file names how a text is split into words (``tokenizer.ggml.pre``) instead of describing it. The name is
interpreted as what Hugging Face's code does for the original model.
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


def tokenizer_of(file: GgufFile) -> tuple[dict, dict[str, str]]:
    """Return the content of a ``tokenizer.json`` and the names of the special tokens by their role.

    Raises ``ValueError`` for an unknown kind of tokenizer or word splitting.
    """

    def read_key(name: str, default: object = None) -> object:
        return file.get(f"tokenizer.ggml.{name}", default)

    kind, tokens = read_key("model"), read_key("tokens")
    if kind not in _USUAL or not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise ValueError(f"its tokenizer is of the kind {kind!r}; {', '.join(_USUAL)} are read")
    types = read_key("token_type") or [_NORMAL] * len(tokens)
    if not isinstance(types, list) or len(types) != len(tokens):
        raise ValueError("its tokenizer has not one type for each entry")
    usual, *around = _USUAL[kind]
    named = {name: _entry(tokens, ids, read_key, usual.get(name)) for name, ids in _NAMED.items()}
    named = {name: token for name, token in named.items() if token is not None}
    if kind == "bert":
        tokens = [_word_piece(token, code) for token, code in zip(tokens, types, strict=True)]
    front = bool(read_key("add_space_prefix", kind in ("llama", "t5")))
    build = {"gpt2": _byte_level, "llama": _sentencepiece, "t5": _unigram, "bert": _wordpiece}[kind]
    architecture = str(file.get("general.architecture"))
    steps, model = build(read_key, tokens, types, named, front, architecture)
    if kind == "gpt2" and read_key("pre", _OLD.get(architecture)) in _LLAMA3:
        around[0] = True
    begins, ends = (
        read_key(f"add_{name}_token", usual) and named.get(f"{name}_token")
        for name, usual in zip(("bos", "eos"), around, strict=True)
    )
    if kind == "bert":
        ends = named.get("sep_token", ends)
    added = [
        {"id": id, "content": token, "special": code in (_CONTROL, _UNKNOWN), "normalized": False}
        | dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
        for id, (token, code) in enumerate(zip(tokens, types, strict=True))
        if code in (_CONTROL, _UNKNOWN, _GIVEN)
    ]
    content = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None}
    content |= {"pre_tokenizer": None, "post_processor": _template(tokens, begins, ends), "decoder": None}
    return content | steps | {"model": model}, named


def _entry(tokens: list[str], ids: tuple[str, ...], read_key: object, usual: int | None) -> str | None:
    id = next((found for name in ids if (found := read_key(name)) is not None), usual)
    return tokens[id] if isinstance(id, int) and 0 <= id < len(tokens) else None


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


def _byte_level(
    read_key: object, tokens: list[str], types: list[int], named: dict, front: bool, architecture: str
) -> tuple[dict, dict]:
    name = read_key("pre")
    if name in (None, "default"):
        name = _OLD.get(architecture, "gpt-2")
    whole = {"type": "ByteLevel", "add_prefix_space": front, "trim_offsets": True, "use_regex": True}
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
    normal = {"type": "NFC"} if name in _QWEN2 or architecture == "gptneox" else None
    merges = [merge.split(" ") for merge in read_key("merges") or []]
    model = {"type": "BPE", "vocab": _by_id(tokens), "merges": merges, "ignore_merges": name in _LLAMA3}
    return {"pre_tokenizer": cut, "normalizer": normal}, model


def _sentencepiece(
    read_key: object, tokens: list[str], types: list[int], named: dict, front: bool, architecture: str
) -> tuple[dict, dict]:
    """Return byte-pair encoding by scores: the adjacent pair with the highest score is merged first."""
    scores = read_key("scores")
    if not isinstance(scores, list) or len(scores) != len(tokens):
        raise ValueError("its tokenizer has not one score for each entry")
    known = {token: score for token, score, code in zip(tokens, scores, types, strict=True) if code == _NORMAL}
    merges = [
        [piece[:cut], piece[cut:]]
        for piece in sorted(known, key=lambda piece: -known[piece])
        for cut in range(1, len(piece))
        if piece[:cut] in known and piece[cut:] in known
    ]
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    steps = [{"type": "Prepend", "prepend": "▁"}, spaces] if front else [spaces]
    model = {"type": "BPE", "vocab": _by_id(tokens), "merges": merges, "byte_fallback": True, "fuse_unk": True}
    return {"normalizer": _sequence("normalizers", *steps)}, model | {"unk_token": named.get("unk_token")}


def _unigram(
    read_key: object, tokens: list[str], types: list[int], named: dict, front: bool, architecture: str
) -> tuple[dict, dict]:
    scores, table = read_key("scores"), read_key("precompiled_charsmap")
    if not isinstance(scores, list) or len(scores) != len(tokens):
        raise ValueError("its tokenizer has not one score for each entry")
    normal = {"type": "Precompiled", "precompiled_charsmap": b64encode(bytes(table)).decode()} if table else None
    metaspace = {
        "type": "Metaspace",
        "replacement": "▁",
        "prepend_scheme": "always" if front else "never",
        "split": True,
    }
    cut = _sequence("pretokenizers", {"type": "WhitespaceSplit"}, metaspace)
    unknown = tokens.index(named["unk_token"])
    model = {"type": "Unigram", "vocab": [list(row) for row in zip(tokens, scores, strict=True)], "unk_id": unknown}
    return {"normalizer": normal, "pre_tokenizer": cut}, model


def _wordpiece(
    read_key: object, tokens: list[str], types: list[int], named: dict, front: bool, architecture: str
) -> tuple[dict, dict]:
    normal = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "lowercase": True}
    model = {"type": "WordPiece", "vocab": _by_id(tokens), "unk_token": named.get("unk_token", "[UNK]")}
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
