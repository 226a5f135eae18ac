"""Tokenizers of translation models whose pieces come from SentencePiece and whose ids from a list beside it.

Marian: ``source.spm``, ``target.spm`` and ``vocab.json``; a text may begin with the language that is asked for,
``>>fra<<``. M2M100: ``sentencepiece.bpe.model`` and ``vocab.json``; every language has a token behind the list.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from transformer.errors import CheckpointError
from transformer.text.foreign.added_tokens import AddedTokens, added_tokens, ids_of
from transformer.text.foreign.files import read_entries, unreadable
from transformer.text.foreign.language_codes import M2M100
from transformer.text.foreign.sentencepiece_file import read_sentencepiece
from transformer.text.foreign.sentencepiece_model import SentencePieceModel
from transformer.text.foreign.sentencepiece_spec import merges_of
from transformer.text.foreign.steps import bounded
from transformer.text.foreign.tokenizer_parts import Parts, special_ids, vocabulary_size
from transformer.text.message import Message

_MARIAN = {"unk_token": "<unk>", "eos_token": "</s>", "pad_token": "<pad>"}
_M2M100 = _MARIAN | {"bos_token": "<s>", "sep_token": "</s>"}


def marian_parts(folder: Path, settings: dict, config: dict, generation: dict) -> Parts:
    source, target = (SentencePieceModel(read_sentencepiece(folder / name)) for name in ("source.spm", "target.spm"))
    entries = read_entries(folder / "vocab.json")
    separate = bool(settings.get("separate_vocabs"))
    written = read_entries(folder / "target_vocab.json") if separate else entries
    added = _added(folder, settings, _MARIAN)
    reads, writes = _ids(folder, entries, added), _ids(folder, written, added)
    languages = {} if separate else {name[2:-2]: id for name, id in reads.items() if _is_language(name)}
    size = vocabulary_size(config, writes)
    if separate and type(config.get("decoder_vocab_size")) is int:
        size = config["decoder_vocab_size"]
    special = added.special | {name for name in writes if _is_language(name)}
    parts = Parts(
        file=folder / "source.spm",
        kind=source.file.kind,
        alphabet="SentencePiece",
        ids=writes,
        special=special_ids(added.named, writes, special, size, configs=(config, generation)),
        special_names=frozenset(special),
        size=size,
        encode=_marian_encode(source, reads, added),
        encode_target=_marian_encode(target, writes, added),
        source_ids=reads if separate else None,
        words=bounded(source.words, source.words),
        after=(reads[added.named["eos_token"]],),
        space_in_front=source.file.space_in_front,
        scores=source.scores,
        merges=lambda: _merges(source),
        languages=languages,
    )

    def speaking(source_language: str | None, target_language: str | None) -> Parts:
        before = (languages[target_language],) if target_language in languages else ()
        return replace(parts, before=before, target_language=target_language if before else None, speaking=speaking)

    return speaking(None, None)


def m2m100_parts(folder: Path, settings: dict, config: dict, generation: dict) -> Parts:
    model = SentencePieceModel(read_sentencepiece(folder / "sentencepiece.bpe.model"))
    entries = read_entries(folder / "vocab.json")
    added = _added(folder, settings, _M2M100)
    codes = M2M100.get(settings.get("language_codes", "m2m100"), M2M100["m2m100"])
    ids = _ids(folder, entries, added) | {f"__{code}__": len(entries) + place for place, code in enumerate(codes)}
    size = vocabulary_size(config, ids)
    languages = {code: ids[f"__{code}__"] for code in codes if ids[f"__{code}__"] < size}
    special = added.special | {f"__{code}__" for code in codes}
    parts = Parts(
        file=folder / "sentencepiece.bpe.model",
        kind=model.file.kind,
        alphabet="SentencePiece",
        ids=ids,
        special=special_ids(added.named, ids, special, size, configs=(config, generation)),
        special_names=frozenset(special),
        size=size,
        encode=bounded(model.words, _between_added(_to_ids(model, ids, added), ids, added)),
        words=bounded(model.words, model.words),
        after=(ids[added.named["eos_token"]],),
        space_in_front=model.file.space_in_front,
        scores=model.scores,
        merges=lambda: _merges(model),
        languages=languages,
    )

    def speaking(source: str | None, target: str | None) -> Parts:
        if (source := source or "en") not in languages:
            raise CheckpointError("the tokenizer knows no language {language}", language=repr(source))
        return replace(
            parts,
            before=(languages[source],),
            answer_before=(languages[target],) if target in languages else (),
            source_language=source,
            target_language=target if target in languages else None,
            speaking=speaking,
        )

    return speaking(settings.get("src_lang"), settings.get("tgt_lang"))


def _merges(model: SentencePieceModel) -> list[list[str]]:
    """The pairs of a file of byte-pair encoding, the highest score first."""
    if model.file.kind != "BPE":
        return []
    return merges_of(tuple(sorted(model.scores, key=lambda piece: -model.scores[piece])))


def _is_language(name: str) -> bool:
    return name.startswith(">>") and name.endswith("<<")


def _added(folder: Path, settings: dict, names: dict[str, object]) -> AddedTokens:
    return added_tokens(folder, settings, of_file=[], keep_file=False, defaults=names, extras=[])


def _ids(folder: Path, entries: dict[str, int], added: AddedTokens) -> dict[str, int]:
    if (unknown := added.named["unk_token"]) not in entries:
        raise unreadable(folder / "vocab.json", Message("it has no entry for {token}", token=unknown))
    return ids_of(entries, len(entries), added.tokens)


def _marian_encode(model: SentencePieceModel, ids: dict[str, int], added: AddedTokens) -> Callable[[str], list[int]]:
    return bounded(model.words, _between_added(_after_language(_to_ids(model, ids, added), ids, added), ids, added))


def _to_ids(model: SentencePieceModel, ids: dict[str, int], added: AddedTokens) -> Callable[[str], list[int]]:
    """Pieces that the list lacks are unknown; a special token that is typed is no piece."""
    unknown = ids[added.named["unk_token"]]
    known = {piece: id for piece, id in ids.items() if piece not in added.special}
    return lambda text: [known.get(piece, unknown) for piece in model.pieces(text)]


def _between_added(
    encode: Callable[[str], list[int]], ids: dict[str, int], added: AddedTokens
) -> Callable[[str], list[int]]:
    """Added tokens that are no special ones are found wherever they are typed; what stands between is cut by itself."""
    typed = {content: token for content, token in added.tokens.items() if not token["special"]}
    if not typed:
        return encode
    expression = re.compile("(" + "|".join(map(re.escape, sorted(typed, key=len, reverse=True))) + ")")

    def encoded(text: str) -> list[int]:
        parts = expression.split(text)
        for place in range(1, len(parts), 2):  # every second part is an added token
            if typed[parts[place]]["lstrip"]:
                parts[place - 1] = parts[place - 1].rstrip()
            if typed[parts[place]]["rstrip"]:
                parts[place + 1] = parts[place + 1].lstrip()
        cut = ([ids[part]] if place % 2 else encode(part) for place, part in enumerate(parts) if part)
        return [id for found in cut for id in found]

    return encoded


def _after_language(
    encode: Callable[[str], list[int]], ids: dict[str, int], added: AddedTokens
) -> Callable[[str], list[int]]:
    """A language code at the beginning of a text is one token."""
    unknown = ids[added.named["unk_token"]]

    def encoded(text: str) -> list[int]:
        end = text.find("<<") + 2
        if not text.startswith(">>") or end < 2:
            return encode(text)
        return [ids.get(text[:end], unknown), *encode(text[end:])]

    return encoded
