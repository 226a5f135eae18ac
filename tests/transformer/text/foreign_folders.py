"""Small tokenizer folders as Hugging Face writes them, trained on a few sentences; difficult texts."""

from __future__ import annotations

import io
import json
import warnings
from pathlib import Path

import pytest
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from transformer.text.guests.tokenizer import GuestTokenizer, open_tokenizer

SENTENCES = [
    "The cat sat on the mat because it was tired, and the dog did not care.",
    "She could not open the bottle; it was too tight! Who else could do it?",
    "In 2017 eight people wrote a paper about attention, with 8 heads and 64 numbers each.",
    "Le chat était fatigué, alors il s'est assis sur le tapis: où est l'école?",
    "Translation models don't read letters, they read pieces of words such as un-believ-able.",
    "def add(a, b):\n    return a + b  # adds two numbers\n\n\tprint(add(1, 22, 333))",
    "日本語の文字 and 中文字符 are text, too, as is مرحبا بالعالم or 🙂👍🏽.",
] * 3

TEXTS = [
    "The cat sat on the mat.",
    "the",
    " ",
    "   ",
    "a",
    " leading",
    "trailing ",
    "  two  spaces  between   words  ",
    "line\nbreak\n\nand more\r\n",
    "tab\tand\ttabs",
    "\n",
    "don't can't WE'LL I'm",
    "numbers 1 22 333 4444 55555 3.14 1,000",
    "punctuation!?... (yes) [no] {maybe} -- «oui» “quoted”",
    "unbelievablyextraordinarilylongwordwithoutanyspaceswhatsoeverforthetest" * 2,
    "a" * 150,
    "émigré naïve Ünïcödé ÀÉÎÕÜ",
    "e\u0301 combining a\u0300",
    "ﬁ ligature ½ ² Ⅳ ｆｕｌｌ width",
    "日本語の文字と漢字",
    "中文 字符 text",
    "مرحبا بالعالم",
    "עברית शब्द ไทย",
    "🙂",
    "emoji 👍🏽 and 👨‍👩‍👧 end",
    "zero\u200bwidth \u00a0no-break\u3000wide",
    "\x00control\x07",
    "snake_case camelCase kebab-case a/b\\c",
    "https://example.org/path?x=1&y=2#z",
    "def f(x):\n    return x+1\n",
    "▁under ▁▁ ##hash Ġbyte <0x41>",
    "UPPER lower MiXeD",
    "-",
    ".",
    "ß ſ İ ı",
    "a blank: ___ or [MASKED]",
]


# Results of the library for SENTENCES (``WordPieceTrainer`` with 300 entries, ``UnigramTrainer`` with 220), stored
# because the library gives other results each time.
TRAINED = json.loads(Path(__file__).with_name("trained_pieces.json").read_text(encoding="utf-8"))


def byte_level(size: int = 400, special: tuple[str, ...] = (), **front: bool) -> tokenizers.Tokenizer:
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, **front)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=list(special), initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator(SENTENCES, trainer)
    return backend


def word_piece(special: tuple[str, ...] = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")) -> tokenizers.Tokenizer:
    entries = {piece: id for id, piece in enumerate((*special, *TRAINED["word_piece"]))}
    backend = tokenizers.Tokenizer(models.WordPiece(entries, unk_token="[UNK]"))
    backend.add_special_tokens(list(special))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        special_tokens=[(name, backend.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )
    return backend


def unigram(special: tuple[str, ...], unknown: str) -> tokenizers.Tokenizer:
    entries = [*((name, 0.0) for name in special), *map(tuple, TRAINED["unigram"])]
    backend = tokenizers.Tokenizer(models.Unigram(entries, special.index(unknown)))
    backend.add_special_tokens(list(special))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    return backend


def with_byte_fallback(special: tuple[str, ...] = ("<unk>", "<s>", "</s>")) -> tokenizers.Tokenizer:
    """As Llama 2's: pieces with ▁, every byte an entry of its own."""
    backend = tokenizers.Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    entries = [*special, *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=entries, show_progress=False)
    backend.train_from_iterator(SENTENCES[:12], trainer)
    content = json.loads(backend.to_str())
    content["added_tokens"] = [token for token in content["added_tokens"] if token["content"] in special]
    return tokenizers.Tokenizer.from_str(json.dumps(content))


def write(folder: Path, config: dict, settings: dict | None, backend: tokenizers.Tokenizer | None) -> Path:
    (folder / "config.json").write_text(json.dumps(config))
    if settings is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    if backend is not None:
        backend.save(str(folder / "tokenizer.json"))
    return folder


def change_fields(file: Path, **changes: object) -> None:
    """Write other values into a JSON object; ``None`` removes a field."""
    fields = json.loads(file.read_text()) | changes
    file.write_text(json.dumps({name: value for name, value in fields.items() if value is not None}))


def sentencepiece(file: Path, kind: str, **options: object) -> Path:
    """Return a SentencePiece file, trained by the library itself."""
    model = io.BytesIO()
    pytest.importorskip("sentencepiece").SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 7),
        model_writer=model,
        model_type=kind,
        hard_vocab_limit=False,
        minloglevel=3,
        **{"vocab_size": 300, **options},
    )
    file.write_bytes(model.getvalue())
    return file


def opened(folder: Path, **config: object) -> GuestTokenizer:
    written = json.loads((folder / "config.json").read_text()) | config
    return open_tokenizer(folder, config=written, generation={})


def theirs(folder: Path) -> object:
    transformers = pytest.importorskip("transformers")
    transformers.logging.set_verbosity_error()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return transformers.AutoTokenizer.from_pretrained(str(folder))


def check_ids(ours: GuestTokenizer, oracle: object) -> None:
    masked = [f"The{space}{oracle.mask_token} sat." for space in ("", " ", "  ")] if oracle.mask_token else []
    for text in TEXTS + masked:
        assert [*ours.before, *ours.encode(text), *ours.after] == oracle(text).input_ids, repr(text)
    assert ours.encode("") == []
    assert ours.special.mask == oracle.mask_token_id
