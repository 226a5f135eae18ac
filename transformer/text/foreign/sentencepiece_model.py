"""Text → pieces with a SentencePiece file alone, as the SentencePiece library cuts it."""

from __future__ import annotations

import re
from ctypes import c_float
from functools import cached_property
from itertools import pairwise

from transformer.text.best_path import UNKNOWN_PENALTY, best_path, kept
from transformer.text.foreign.sentencepiece_file import PieceType, SentencePieceFile
from transformer.text.foreign.sentencepiece_text import SPACE, GivenPieces, Normalizer
from transformer.text.scored_pairs import join_pairs


def single_precision(value: float) -> float:
    """The library adds scores in 32 bits."""
    return c_float(value).value


class SentencePieceModel:
    def __init__(self, file: SentencePieceFile) -> None:
        self.file = file
        self.normalize = Normalizer(file)
        rows = list(zip(file.pieces, file.scores, file.types, strict=True))
        normal = [score for _, score, type in rows if type == PieceType.NORMAL] or [0.0]
        self.unknown_score = single_precision(min(normal) - UNKNOWN_PENALTY)
        self._given = frozenset(file.of_type(PieceType.USER_DEFINED))
        self._cut = GivenPieces(self._given)
        self.scores = {piece: score for piece, score, type in rows if type == PieceType.NORMAL}
        for piece in self._given:  # always taken
            self.scores[piece] = len(piece.encode()) * max(normal) - 0.1

    @cached_property
    def longest(self) -> int:
        """Characters of the longest piece."""
        return max(map(len, self.scores), default=1)

    def pieces(self, text: str) -> list[str]:
        """The pieces of a text; what no piece covers stands for itself, or for its bytes."""
        normal = self.normalize(text)
        cut = self._best_path(normal) if self.file.kind == "Unigram" else self._pairs(normal)
        if not self.file.byte_fallback:
            return cut
        return [
            part
            for piece in cut
            for part in ([piece] if piece in self.scores else (f"<0x{byte:02X}>" for byte in piece.encode()))
        ]

    def words(self, text: str) -> list[str]:
        """The normalised text, cut before every ▁."""
        return re.findall(f"{SPACE}?[^{SPACE}]+|{SPACE}", self.normalize(text))

    def _best_path(self, normal: str) -> list[str]:
        places = best_path(
            normal,
            self.scores,
            longest=self.longest,
            unknown=self.unknown_score,
            rounded=single_precision,
            every=False,
        )
        return [candidate.piece for candidate in kept(places)]

    def _pairs(self, normal: str) -> list[str]:
        cut = join_pairs(self._cut.symbols(normal), self.scores, self._given)
        joined = cut[:1]
        for before, piece in pairwise(cut):  # unknown characters side by side are one piece
            if before in self.scores or piece in self.scores:
                joined.append(piece)
            else:
                joined[-1] += piece
        return joined
