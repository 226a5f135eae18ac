"""The model of a ``tokenizer.json`` as the tokenizers library's, with some entries under other names."""

from __future__ import annotations

from tokenizers import models

_OPTIONS = {
    "BPE": ("unk_token", "continuing_subword_prefix", "fuse_unk", "byte_fallback", "ignore_merges"),
    "WordPiece": ("unk_token", "continuing_subword_prefix", "max_input_chars_per_word"),
    "WordLevel": ("unk_token",),
    "Unigram": ("unk_id", "byte_fallback"),
}


def library_model(model: dict, renamed: dict[str, str]) -> models.Model:
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
