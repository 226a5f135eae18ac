"""A folder with a SentencePiece file alone, in the words of ``tokenizer.json``."""

from __future__ import annotations

from base64 import b64encode
from itertools import islice
from pathlib import Path

from transformer.text.foreign.files import MOST_MERGES
from transformer.text.foreign.pipelines import Pipeline, replace, sequence
from transformer.text.foreign.sentencepiece_file import PieceType, SentencePieceFile


def sentencepiece_of(folder: Path, pipeline: Pipeline | None) -> Path | None:
    """The SentencePiece file that Hugging Face opens, if there is one."""
    for name in (*(pipeline.vocabulary if pipeline else ()), "tokenizer.model"):
        if name.endswith(".model") and (folder / name).is_file():
            return folder / name
    return None


def given_tokens(read: SentencePieceFile) -> list[dict]:
    """What Hugging Face adds for a file: control pieces are special, pieces given by hand are not."""
    return [
        {"content": piece, "special": type == PieceType.CONTROL, "normalized": False}
        for piece, type in zip(read.pieces, read.types, strict=True)
        if type in (PieceType.CONTROL, PieceType.USER_DEFINED)
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
        model |= {"merges": merges_of(read.pieces), "unk_token": read.names["unk_token"], "fuse_unk": True}
    else:
        model |= {"vocab": [list(row) for row in rows], "unk_id": read.unknown_id}
    charsmap = None
    if read.charsmap:
        charsmap = {"type": "Precompiled", "precompiled_charsmap": b64encode(read.charsmap).decode()}
    return {
        "model": model,
        "normalizer": charsmap if pipeline else sequence("normalizers", charsmap, replace({"String": " "}, "▁")),
    }


def merges_of(pieces: tuple[str, ...]) -> list[list[str]]:
    """Every way to join two pieces to a third, in the order of the third; of these the shorter left part first.

    Not many more than ``MOST_MERGES``, which no file has that is opened.
    """
    known = set(pieces)
    cuts = ((piece[:cut], piece[cut:]) for piece in pieces for cut in range(1, len(piece)))
    merges = ([left, right] for left, right in cuts if left in known and right in known)
    return list(islice(merges, MOST_MERGES + 1))
