"""A Hugging Face tokenizer as one description in the words of ``tokenizer.json``, made from a folder's files.

Where a class of ``pipelines`` opens the folder, only the vocabulary comes from the file; else the file counts as it is.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import tokenizers
from tokenizers import models

from transformer.text.foreign.added_tokens import AddedTokens, added_tokens, ids_of
from transformer.text.foreign.checks import check_added, check_content
from transformer.text.foreign.files import guarded, read_entries, read_lines, read_merges, read_object, unreadable
from transformer.text.foreign.pipelines import PIPELINES, Pipeline, sequence
from transformer.text.foreign.sentencepiece_file import SentencePieceFile, read_sentencepiece
from transformer.text.foreign.sentencepiece_spec import (
    control_pieces,
    given_pieces_whole,
    given_tokens,
    sentencepiece_content,
    sentencepiece_of,
)
from transformer.text.foreign.steps import steps_of
from transformer.text.message import Message

# Special tokens that are typed stay text: in what is given to the library their names begin with a character that is
# never text, so that no model finds them. Ids follow from places and stay the same.
HIDDEN = "\uffff"
# What a model of the library is told besides its vocabulary
_OPTIONS = {
    "BPE": ("unk_token", "continuing_subword_prefix", "fuse_unk", "byte_fallback", "ignore_merges"),
    "WordPiece": ("unk_token", "continuing_subword_prefix", "max_input_chars_per_word"),
    "WordLevel": ("unk_token",),
    "Unigram": ("unk_id", "byte_fallback"),
}


@dataclass(frozen=True)
class Spec:
    """``content``: as in ``tokenizer.json``. ``ids``: every entry, added tokens included. ``before`` and ``after``: the
    tokens around a text."""

    file: Path
    content: dict
    added: AddedTokens
    ids: dict[str, int]
    before: tuple[str, ...]
    after: tuple[str, ...]
    settings: dict

    @property
    def kind(self) -> str:
        """ "BPE", "WordPiece", "WordLevel" or "Unigram"."""
        return self.content["model"]["type"]

    @property
    def alphabet(self) -> str:
        """How pieces are written: a key of ``BYTES_OF``."""
        if self.kind in ("WordPiece", "WordLevel"):
            return "word pieces"
        steps = (step for part in ("normalizer", "pre_tokenizer", "decoder") for step in steps_of(self.content, part))
        byte_level = any(isinstance(step, dict) and step.get("type") == "ByteLevel" for step in steps)
        return "byte-level" if byte_level else "SentencePiece"

    @property
    def puts_space_in_front(self) -> bool:
        """Whether a text begins with a space that nobody typed."""
        if self.alphabet == "word pieces":
            return True
        for step in (step for part in ("normalizer", "pre_tokenizer") for step in steps_of(self.content, part)):
            match step.get("type"):
                case "Prepend":
                    return step.get("prepend") in ("▁", " ")
                case "Metaspace":
                    older = "always" if step.get("add_prefix_space", True) else "never"
                    return step.get("prepend_scheme", older) != "never"
                case "ByteLevel" if step.get("add_prefix_space"):
                    return True
        return False

    def backend(self, mask: str | None) -> tokenizers.Tokenizer:
        """The library's tokenizer: ids as Hugging Face's, but of special tokens only ``mask`` is found in a text."""
        hidden = {content: HIDDEN + content for content in self.added.special if content != mask}
        tokens = [
            tokenizers.AddedToken(hidden.get(content, content), special=content in hidden, **_found_as(token))
            for content, token in self.added.tokens.items()
        ]
        steps = {part: self.content.get(part) for part in ("version", "normalizer", "pre_tokenizer")}
        empty = {"model": {"type": "BPE", "vocab": {}, "merges": []}, "added_tokens": []}

        def made() -> tokenizers.Tokenizer:
            found = tokenizers.Tokenizer.from_str(json.dumps({**steps, "version": steps["version"] or "1.0", **empty}))
            found.model = _library_model(self.content["model"], hidden)
            found.add_tokens(tokens)
            return found

        return guarded(self.file, made)


def _library_model(model: dict, renamed: dict[str, str]) -> models.Model:
    """``model``: as in ``tokenizer.json``, its merges as pairs. Merges that make or use a renamed entry are left out.

    Raises whatever the library does for a model that does not fit together.
    """
    kind, vocabulary = model["type"], model["vocab"]
    options = {name: model[name] for name in _OPTIONS[kind] if model.get(name) is not None}
    if options.get("unk_token") in renamed:
        options["unk_token"] = renamed[options["unk_token"]]
    if kind == "Unigram":
        pieces = [(renamed.get(piece, piece), float(score)) for piece, score in vocabulary]
        return models.Unigram(pieces, **options)
    if not renamed.keys().isdisjoint(vocabulary):
        vocabulary = {renamed.get(piece, piece): id for piece, id in vocabulary.items()}
    if kind == "BPE":
        merges = model["merges"]
        if renamed:
            merges = [
                pair
                for pair in merges
                if pair[0] not in renamed and pair[1] not in renamed and pair[0] + pair[1] not in renamed
            ]
        return models.BPE(vocab=vocabulary, merges=merges, **options)
    return {"WordPiece": models.WordPiece, "WordLevel": models.WordLevel}[kind](vocabulary, **options)


def _found_as(token: dict) -> dict[str, bool]:
    return {flag: token[flag] for flag in ("single_word", "lstrip", "rstrip", "normalized")}


def open_spec(folder: Path, class_name: str, settings: dict) -> Spec:
    pipeline = PIPELINES.get(class_name)
    file = folder / "tokenizer.json"
    if not file.is_file():
        return _older(folder, class_name, pipeline, settings)
    content = read_object(file)
    check_content(file, content)
    if pipeline is not None and pipeline.kind == "Unigram" != content["model"]["type"]:
        what = {"kind": content["model"]["type"], "name": class_name, "expected": pipeline.kind}
        raise unreadable(file, Message("its model is {kind}; a {name} has {expected}", **what))
    added = _added(folder, pipeline, settings, of_file=content.get("added_tokens") or [])
    return _finished(file, content, pipeline, added, settings)


def _older(folder: Path, class_name: str, pipeline: Pipeline | None, settings: dict) -> Spec:
    """Folders from before ``tokenizer.json``: a vocabulary with merges, a vocabulary alone, or a SentencePiece file."""
    if (file := sentencepiece_of(folder, pipeline)) is not None:
        read = read_sentencepiece(file)
        added = _added(folder, pipeline, settings, pieces=read)
        content = sentencepiece_content(read, pipeline, added.named, settings)
        check_content(file, content)
        settings = settings | {"unk_id": read.unknown_id}
        if pipeline is None:
            content = given_pieces_whole(read, content)
    else:
        names = pipeline.vocabulary if pipeline else ()
        if not names or not all((folder / name).is_file() for name in names):
            raise unreadable(
                folder, Message("it has no tokenizer.json and none of the older files of a {name}", name=class_name)
            )
        file = folder / names[0]
        lines = names[0] == "vocab.txt"
        model = (
            {"vocab": read_lines(file)}
            if lines
            else {"vocab": read_entries(file), "merges": read_merges(folder / names[1])}
        )
        content = {"model": {"type": pipeline.kind, **model}}
        added = _added(folder, pipeline, settings)
        check_content(file, content)
    return _finished(file, content, pipeline, added, settings)


def _added(
    folder: Path,
    pipeline: Pipeline | None,
    settings: dict,
    *,
    of_file: list | None = None,
    pieces: SentencePieceFile | None = None,
) -> AddedTokens:
    names = pipeline.names if pipeline else pieces.names if pieces else {}
    extras: list = pipeline.extras(settings) if pipeline else []
    if pieces:  # in place of NLLB's languages
        extras = given_tokens(pieces, pipeline) + ([] if pipeline is PIPELINES["NllbTokenizer"] else extras)
    found = added_tokens(
        folder, settings, of_file=of_file or [], keep_file=pipeline is None, defaults=names, extras=extras
    )
    if pieces is None:
        return found
    if pipeline is None and pieces.space_in_front:  # looked for in the text as typed
        found.tokens.update({name: token | {"normalized": False} for name, token in found.tokens.items()})
    return replace(found, controls=frozenset(control_pieces(pieces)))


def _finished(file: Path, content: dict, pipeline: Pipeline | None, added: AddedTokens, settings: dict) -> Spec:
    """The description with everything that the class and the settings add to the vocabulary of ``content``."""
    check_added(file, added.tokens)
    if pipeline is not None:
        content = _by_class(content, pipeline, added, settings)
    pieces = content["model"]["vocab"]
    vocabulary = pieces if isinstance(pieces, dict) else {piece: id for id, (piece, _) in enumerate(pieces)}
    ids = ids_of(vocabulary, len(pieces), added.tokens)
    spec = Spec(file, content, added, ids, (), (), settings)
    before, after = guarded(file, lambda: _around_text(spec, pipeline))
    return replace(spec, before=before, after=after)


def _by_class(content: dict, pipeline: Pipeline, added: AddedTokens, settings: dict) -> dict:
    """What the class makes of the vocabulary, of whatever model; of the other parts only the post-processor stays."""
    old = content["model"]
    pieces = old["vocab"]
    if old["type"] == "Unigram" != pipeline.kind:
        pieces = {piece: id for id, (piece, _) in enumerate(pieces)}
    model = {"type": pipeline.kind, "vocab": pieces} | pipeline.model(settings)
    if pipeline.kind == "BPE":
        model = {"dropout": None, "unk_token": None, "merges": old.get("merges", [])} | model
        model["unk_token"] = added.named.get("unk_token") if model["unk_token"] else None
    elif pipeline.kind == "WordPiece":
        model["unk_token"] = added.named.get("unk_token", "[UNK]")
    elif "unk_id" not in model:  # DeBERTa looks for it
        unknown = [added.named.get("unk_token"), 0.0]
        model["unk_id"] = old["vocab"].index(unknown) if unknown in old["vocab"] else settings.get("unk_id", 1)
    normalizer = pipeline.normalizer(settings)
    if pipeline.charsmap:
        first = [step for step in steps_of(content, "normalizer") if step.get("type") == "Precompiled"][:1]
        normalizer = sequence("normalizers", *first, normalizer) if first else None
    return {
        "normalizer": normalizer,
        "pre_tokenizer": pipeline.pre_tokenizer(settings),
        "post_processor": content.get("post_processor"),
        "model": model,
    }


def _around_text(spec: Spec, pipeline: Pipeline | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    named = spec.added.named
    if pipeline is not None and pipeline.before is not None:
        return tuple(named[name] for name in pipeline.before), tuple(named[name] for name in pipeline.after)
    if spec.file.name != "tokenizer.json":
        begins = spec.settings.get("add_bos_token") and named.get("bos_token")
        ends = spec.settings.get("add_eos_token") and named.get("eos_token")
        return (begins,) if begins else (), (ends,) if ends else ()
    if pipeline is PIPELINES["GPTNeoXTokenizer"]:
        return (), ()  # Hugging Face puts this class's own settings in place of the file's post-processor
    return _post_processor(spec)


def _post_processor(spec: Spec) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tokens that the file's post-processor puts around one text."""
    before, after = [], []
    for step in steps_of(spec.content, "post_processor"):
        if not isinstance(step, dict):
            continue
        if step.get("type") in ("BertProcessing", "RobertaProcessing"):
            before, after = [step["cls"][0], *before], [*after, step["sep"][0]]
        elif step.get("type") == "TemplateProcessing":
            outside = before
            first: list[str] = []
            last: list[str] = []
            side = first
            for place in step.get("single", []):
                if "Sequence" in place:
                    side = last
                else:
                    side.extend(step["special_tokens"][place["SpecialToken"]["id"]]["tokens"])
            before, after = first + outside, after + last
    return tuple(before), tuple(after)
