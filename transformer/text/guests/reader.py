"""A third-party tokenizer, opened by its library. It runs in a process of its own (``process.py``).

``AutoTokenizer`` of ``transformers`` interprets a folder; the keys of a GGUF file become a ``tokenizer.json``.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256
from pathlib import Path

import tokenizers

from transformer.disk.gguf_file import GgufFile
from transformer.text.guests.gguf_tokenizer import tokenizer_of

# Special tokens that a user types stay text: in the splitting model their names begin with a character that no text
# contains. Ids depend on the order only and stay the same.
HIDDEN = "\uffff"
_USUAL_MASKS = ("[MASK]", "<mask>")
_FLORES_CODE = re.compile(r"[a-z]{3}_[A-Z][a-z]{3}")
_NORMAL, _GIVEN = 1, 4  # types of SentencePiece's entries: learned, and user-defined


def open_reader(folder: Path) -> FastReader | SentencePieceReader:
    """Return the reader of a folder or a GGUF file.

    Raises anything that the libraries raise for an unreadable file.
    """
    if folder.is_file():
        file = GgufFile(folder)
        content, named = tokenizer_of(file)
        template = file.get("tokenizer.chat_template")
        return FastReader(tokenizers.Tokenizer.from_str(json.dumps(content)), named, template=template)
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    if theirs.is_fast:
        return FastReader(theirs.backend_tokenizer, _named(theirs), theirs, template=theirs.chat_template)
    if type(theirs).__name__ not in ("MarianTokenizer", "M2M100Tokenizer"):
        raise ValueError(f"a {type(theirs).__name__} is not supported")
    return SentencePieceReader(theirs)


def _named(theirs: object) -> dict[str, str]:
    return {name: str(token) for name, token in theirs.special_tokens_map.items() if name.endswith("_token")}


class Reader:
    """Base class of both kinds of readers. All results consist of JSON types.

    ``theirs`` is the tokenizer of ``transformers``, if a folder was read.
    """

    theirs: object | None

    def languages(self) -> dict[str, int]:
        """Return the ids of the language codes."""
        return {}

    def around(self, source: str | None = None, target: str | None = None) -> dict:
        """Return the ids before and after a text, and before an output, for two languages."""
        if source is not None:
            self.theirs.src_lang = source
        if self.languages():
            self.theirs.tgt_lang = target
        before, after = self._around(target=False)
        answers = not self.languages() or target is not None or hasattr(self.theirs, "legacy_behaviour")
        return {
            "before": before,
            "after": after,
            "answer_before": self._around(target=True)[0] if answers else [],
            "source_language": getattr(self.theirs, "src_lang", None),
            "target_language": target,
        }

    def _around(self, *, target: bool) -> tuple[list[int], list[int]]:
        inner, whole = (self._whole("x", target=target, around=around) for around in (False, True))
        for start in range(len(whole) - len(inner) + 1):
            if whole[start : start + len(inner)] == inner:
                return whole[:start], whole[start + len(inner) :]
        return [], []

    def _whole(self, text: str, *, target: bool, around: bool) -> list[int]:
        given = {"text_target": text} if target else {"text": text}
        return self.theirs(**given, add_special_tokens=around).input_ids


class FastReader(Reader):
    """A tokenizer of the ``tokenizers`` library.

    ``named`` holds its special tokens by role; ``template`` is its chat template in Jinja, or several by name.
    """

    def __init__(
        self,
        backend: tokenizers.Tokenizer,
        named: dict[str, str],
        theirs: object | None = None,
        *,
        template: object = None,
    ) -> None:
        backend.no_padding()
        backend.no_truncation()
        content = json.loads(backend.to_str())
        self.theirs, self.named, self._backend = theirs, named, backend
        template = template.get("default") if isinstance(template, dict) else template
        self.template = template if isinstance(template, str) else None
        model = content["model"]
        for part in ("dropout", "end_of_word_suffix"):  # random ids, and spaces that no page would show
            if model.get(part):
                raise ValueError(f"its model has {part} {model[part]!r}, which is not supported")
        added = {token["content"]: token["special"] for token in content["added_tokens"]}
        self.special = {*named.values(), *(name for name, special in added.items() if special)}
        self.typed = added.keys() - self.special
        usual = (name for name in _USUAL_MASKS if name in self.special)
        self.mask = named.get("mask_token", next(usual, None))
        self._as_text = tokenizers.Tokenizer.from_str(json.dumps(_hidden(content, self.special - {self.mask})))
        self.kind = model["type"]
        steps = json.dumps([content[part] for part in ("normalizer", "pre_tokenizer", "decoder")])
        self.alphabet = "byte-level" if '"ByteLevel"' in steps else "SentencePiece"
        if self.kind in ("WordPiece", "WordLevel"):
            self.alphabet = "word pieces"

    def describe(self) -> dict:
        """Return the vocabulary, the roles of its special tokens, and the tokens around a text."""
        found = {
            "kind": self.kind,
            "alphabet": self.alphabet,
            "ids": self._backend.get_vocab(with_added_tokens=True),
            "named": self.named,
            "special": sorted(self.special),
            "typed": sorted(self.typed),
            "mask": self.mask,
            "space_in_front": self.alphabet == "word pieces" or self.words("x")[:1] != ["x"],
            "template": self.template and sha256(self.template.encode("utf-8", "replace")).hexdigest(),
            "languages": self.languages(),
            **self.around(target=getattr(self.theirs, "tgt_lang", None)),
        }
        if not found["languages"]:
            self.theirs = None  # the full tokenizer holds a second copy of the vocabulary
        return found

    def encode(self, texts: list[str], target: bool = False) -> list[list[int]]:
        """Return ids of texts without the tokens around them; special tokens stay text, except for the mask."""
        return [found.ids for found in self._as_text.encode_batch(texts, add_special_tokens=False)]

    def encode_special(self, text: str) -> list[int]:
        """Return ids of a text in which special tokens are recognised, without the tokens around it."""
        return self._backend.encode(text, add_special_tokens=False).ids

    def chat(self, messages: list[dict[str, str]], variables: dict) -> list[int] | str:
        """Return ids of a chat in the template, up to the start of the model's turn; or the template's error."""
        from transformers.utils.chat_template_utils import render_jinja_template

        given = {**self.named, **variables, "add_generation_prompt": True, "chat_template": self.template}
        try:
            ((text,), _) = render_jinja_template(conversations=[messages], **given)
        except MemoryError:
            raise
        except Exception as error:  # a template may raise any exception
            return (str(error) or type(error).__name__).strip()[:300]
        return self.encode_special(text)

    def words(self, text: str) -> list[str]:
        """Return the pre-tokenizer's words in the notation of the pieces, which never cross words."""
        if (normalizer := self._backend.normalizer) is not None:
            text = normalizer.normalize_str(text)
        cut = self._backend.pre_tokenizer
        return [word for word, _ in cut.pre_tokenize_str(text)] if cut is not None else [text]

    def merges(self) -> list[list[str]]:
        """Return the merges, the earliest first. They are not kept: Gemma's JSON takes 300 MB."""
        return json.loads(self._backend.to_str())["model"].get("merges", [])

    def languages(self) -> dict[str, int]:
        """Return the ids of the language codes."""
        if type(self.theirs).__name__ != "NllbTokenizer":
            return {}
        found = {name: self._backend.token_to_id(name) for name in sorted(self.special) if _FLORES_CODE.fullmatch(name)}
        return {name: id for name, id in found.items() if id is not None}

    def _whole(self, text: str, *, target: bool, around: bool) -> list[int]:
        if self.theirs is None:
            return self._backend.encode(text, add_special_tokens=around).ids
        return super()._whole(text, target=target, around=around)


def _hidden(content: dict, special: set[str]) -> dict:
    """Return a ``tokenizer.json`` in which the tokens ``special`` match no text; ids are unchanged."""
    names = {name: HIDDEN + name for name in special}
    model = dict(content["model"])
    if isinstance(model["vocab"], list):
        model["vocab"] = [[names.get(piece, piece), score] for piece, score in model["vocab"]]
    else:
        model["vocab"] = {names.get(piece, piece): id for piece, id in model["vocab"].items()}
    if "merges" in model:
        model["merges"] = [pair for pair in model["merges"] if special.isdisjoint((*pair, pair[0] + pair[1]))]
    if model.get("unk_token") in names:
        model["unk_token"] = names[model["unk_token"]]
    added = [token | {"content": names.get(token["content"], token["content"])} for token in content["added_tokens"]]
    return content | {"model": model, "added_tokens": added, "post_processor": None}


class SentencePieceReader(Reader):
    """Reader for Marian and M2M100: pieces come from SentencePiece, ids from a separate list."""

    alphabet = "SentencePiece"

    def __init__(self, theirs: object) -> None:
        from sentencepiece import sentencepiece_model_pb2
        from transformers.tokenization_python import Trie

        self.theirs = theirs
        self._pieces = getattr(theirs, "spm_source", None) or theirs.sp_model
        self._file = sentencepiece_model_pb2.ModelProto()
        self._file.ParseFromString(self._pieces.serialized_model_proto())
        self.kind = {1: "Unigram", 2: "BPE"}[self._file.trainer_spec.model_type]
        self._marian = hasattr(theirs, "spm_source")
        added = theirs.added_tokens_encoder
        self.reads = {**theirs.encoder, **added}
        if not self._marian:
            self.reads |= theirs.lang_token_to_id
        self.separate = self._marian and theirs.separate_vocabs
        self.writes = {**theirs.target_encoder, **added} if self.separate else self.reads
        tokens = theirs.added_tokens_decoder.values()
        self.special = {*_named(theirs).values(), *(token.content for token in tokens if token.special)}
        self.special |= {name for name in self.writes if _is_language(name)}
        self.special |= set() if self._marian else theirs.lang_token_to_id.keys()
        self.typed = added.keys() - self.special
        theirs.tokens_trie = Trie(self.typed)

    def languages(self) -> dict[str, int]:
        """Return the ids of the language codes."""
        if not self._marian:
            return {code: self.theirs.get_lang_id(code) for code in self.theirs.lang_code_to_token}
        return {name[2:-2]: id for name, id in self.reads.items() if _is_language(name)} if not self.separate else {}

    def around(self, source: str | None = None, target: str | None = None) -> dict:
        """Return the tokens around a text; Marian translates into the language whose code precedes the text."""
        if not self._marian:
            return super().around(source, target)
        before = [self.languages()[target]] if target in self.languages() else []
        return {
            "before": before,
            "after": self._around(target=False)[1],
            "answer_before": [],
            "source_language": None,
            "target_language": target if before else None,
        }

    def describe(self) -> dict:
        """Return the vocabulary, the roles of its special tokens, and the tokens around a text."""
        return {
            "kind": self.kind,
            "alphabet": self.alphabet,
            "ids": self.writes,
            "source_ids": self.reads if self.separate else None,
            "named": _named(self.theirs),
            "special": sorted(self.special),
            "typed": sorted(self.typed),
            "mask": None,
            "space_in_front": self._pieces.normalize("x") != "x",
            "languages": self.languages(),
            **self.around(target=None if self._marian else self.theirs.tgt_lang),
        }

    def encode(self, texts: list[str], target: bool = False) -> list[list[int]]:
        """Return ids of texts without the tokens around them; special tokens stay text.

        With ``target``, texts are outputs, for which some Marian models have a vocabulary of their own.
        """
        target = target and self._marian  # M2M100 has a single vocabulary and needs no output language here
        return [
            self.theirs(
                **({"text_target": text} if target else {"text": text}),
                add_special_tokens=False,
                split_special_tokens=text in self.special,
            ).input_ids
            for text in texts
        ]

    def words(self, text: str) -> list[str]:
        """Return the normalised text, split before every ▁."""
        return re.findall("▁?[^▁]+|▁", self._pieces.normalize(text))

    def merges(self) -> list[list[str]]:
        """Return all pairs of pieces that join to a third, by descending score, then length of the left one."""
        if self.kind != "BPE":
            return []
        scores = self._scores()
        ordered = sorted(scores, key=lambda piece: -scores[piece])
        cuts = ((piece[:cut], piece[cut:]) for piece in ordered for cut in range(1, len(piece)))
        return [[left, right] for left, right in cuts if left in scores and right in scores]

    def _scores(self) -> dict[str, float]:
        """Return the log probability of each piece."""
        normal = {entry.piece: entry.score for entry in self._file.pieces if entry.type == _NORMAL}
        highest = max(normal.values(), default=0.0)
        # user-defined pieces are always matched
        given = [entry.piece for entry in self._file.pieces if entry.type == _GIVEN]
        return normal | {piece: len(piece.encode()) * highest - 0.1 for piece in given}


def _is_language(name: str) -> bool:
    return name.startswith(">>") and name.endswith("<<")
