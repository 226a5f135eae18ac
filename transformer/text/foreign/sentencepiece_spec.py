"""A folder with a SentencePiece file alone, in the words of ``tokenizer.json``."""

from __future__ import annotations

import re
from base64 import b64encode
from itertools import islice
from pathlib import Path

from transformer.text.foreign.files import MAX_MERGES, unreadable
from transformer.text.foreign.pipelines import Pipeline, Step, metaspace, replace, sequence
from transformer.text.foreign.sentencepiece_file import PieceType, SentencePieceFile
from transformer.text.foreign.split_expressions import OUTER_SPACES, TYPED_SPACE
from transformer.text.message import Message

MAX_GIVEN_CHARACTERS = 20_000  # of all pieces given by hand together: a text is searched for each of them


def sentencepiece_of(folder: Path, pipeline: Pipeline | None) -> Path | None:
    """The SentencePiece file that Hugging Face opens, if there is one."""
    for name in (*(pipeline.vocabulary if pipeline else ()), "tokenizer.model"):
        if name.endswith(".model") and (folder / name).is_file():
            return folder / name
    return None


def given_tokens(read: SentencePieceFile, pipeline: Pipeline | None) -> list[dict]:
    """What Hugging Face adds for a file: control pieces are special, pieces given by hand are not.

    Without a class, pieces given by hand are found by ``given_pieces_whole`` instead.
    """
    added = (PieceType.CONTROL, PieceType.USER_DEFINED) if pipeline else (PieceType.CONTROL,)
    return [
        {"content": piece, "special": type == PieceType.CONTROL, "normalized": False}
        for piece, type in zip(read.pieces, read.types, strict=True)
        if type in added
    ]


def control_pieces(read: SentencePieceFile) -> tuple[str, ...]:
    return read.of_type(PieceType.CONTROL, PieceType.UNKNOWN)


def sentencepiece_content(
    read: SentencePieceFile, pipeline: Pipeline | None, named: dict[str, str], settings: dict
) -> dict:
    """``named``: the contents of the tokens with a job. A class may add pieces to the file's, or move some."""
    kind = pipeline.kind if pipeline else read.kind
    rows = list(zip(read.pieces, read.scores, strict=True))
    if pipeline is not None:
        rows = pipeline.pieces(rows, named, settings)
    model: dict = {"type": kind, "byte_fallback": read.byte_fallback}
    if kind == "BPE":
        model["vocab"] = {piece: id for id, (piece, _) in enumerate(rows)}
        merges = merges_of(read.pieces if pipeline else _by_score(read))
        model |= {"merges": merges, "unk_token": read.names["unk_token"], "fuse_unk": True}
    else:
        model |= {"vocab": [list(row) for row in rows], "unk_id": read.unknown_id}
    charsmap = None
    if read.charsmap:
        charsmap = {"type": "Precompiled", "precompiled_charsmap": b64encode(read.charsmap).decode()}
    if pipeline is not None:
        return {"model": model, "normalizer": charsmap}
    return {"model": model, **_as_the_library(read, charsmap, legacy=bool(settings.get("legacy", True)))}


def _as_the_library(read: SentencePieceFile, charsmap: Step | None, *, legacy: bool) -> dict[str, Step | None]:
    """The steps by which a text is cut as the SentencePiece library cuts it, by the settings in the file.

    transformers does so from 5.24 on. Before, it put no ▁ in front of a text, which the file asks for: "The" at the
    beginning became other pieces than those that the model was trained on. ``legacy``: a ▁ stands behind every added
    token, too.
    """
    steps = [charsmap]
    if read.joins_spaces:  # other whitespace stays
        steps += [replace({"Regex": " {2,}"}, " "), replace({"Regex": OUTER_SPACES}, "")]
    steps.append(replace({"String": " "}, "▁"))
    if read.space_in_front and legacy:  # Metaspace puts none in front of one that is typed
        steps.append(replace({"Regex": TYPED_SPACE}, "▁▁"))
    front = metaspace("always" if legacy else "first", split=False)
    return {
        "normalizer": sequence("normalizers", *steps),
        "pre_tokenizer": sequence("pretokenizers", front) if read.space_in_front else None,
    }


def given_pieces_whole(read: SentencePieceFile, content: dict) -> dict:
    """``content`` where pieces given by hand are taken whole wherever they stand in a text, and never joined."""
    given = sorted(read.of_type(PieceType.USER_DEFINED), key=len, reverse=True)
    if not given:
        return content
    if (count := sum(map(len, given))) > MAX_GIVEN_CHARACTERS:
        what = {"count": f"{count:,}", "most": f"{MAX_GIVEN_CHARACTERS:,}"}
        raise unreadable(
            read.file, Message("its entries have {count} characters together; at most {most} are read", **what)
        )
    pattern = {"Regex": "|".join(map(re.escape, given))}
    whole = {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}
    return content | {
        "model": content["model"] | ({"ignore_merges": True} if content["model"]["type"] == "BPE" else {}),
        "pre_tokenizer": sequence("pretokenizers", content["pre_tokenizer"], whole),
    }


def _by_score(read: SentencePieceFile) -> tuple[str, ...]:
    """The pieces that may be joined, the highest score first."""
    rows = zip(read.pieces, read.scores, read.types, strict=True)
    normal = [(piece, score) for piece, score, type in rows if type == PieceType.NORMAL]
    return tuple(piece for piece, _ in sorted(normal, key=lambda row: -row[1]))


def merges_of(pieces: tuple[str, ...]) -> list[list[str]]:
    """Every way to join two pieces to a third, in the order of the third; of these the shorter left part first.

    Not many more than ``MAX_MERGES``, which no file has that is opened.
    """
    known = set(pieces)
    cuts = ((piece[:cut], piece[cut:]) for piece in pieces for cut in range(1, len(piece)))
    merges = ([left, right] for left, right in cuts if left in known and right in known)
    return list(islice(merges, MAX_MERGES + 1))
