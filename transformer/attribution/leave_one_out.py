"""What each word contributes to a classifier's verdict: take it away and ask again (Li, Monroe & Jurafsky 2016,
"Understanding Neural Networks through Representation Erasure")."""

from dataclasses import dataclass

import numpy as np
import torch

from transformer.config import PictureConfig
from transformer.fast.shortcut import fast_path
from transformer.files.checkpoints import Checkpoint
from transformer.runs.inputs import source_tensor
from transformer.text.word_spans import Word, words_of

_BATCH = 32


@dataclass(frozen=True)
class LeaveOneOut:
    """``probabilities`` [class] of the whole sentence; ``without`` [word, class] when one word is left out."""

    class_names: tuple[str, ...]
    words: tuple[Word, ...]
    probabilities: np.ndarray
    without: np.ndarray

    @property
    def contributions(self) -> np.ndarray:
        """[word, class]: p(class | all words) − p(class | all but this one). Positive: it speaks for the class."""
        return self.probabilities - self.without


def leave_one_out(checkpoint: Checkpoint, sentence: str, *, pads: int = 0) -> LeaveOneOut:
    """Classify the sentence, then again once for every word without that word, all measured, nothing estimated.

    Of a picture the words are its patches, and one is left out by ``<mask>`` in its place: without it the others would
    move.
    Raises ``ValueError`` for a model that has no classes, ``InputError`` for a text that the model cannot take.
    """
    if not checkpoint.config.n_classes:
        raise ValueError(f"{checkpoint.name} is not a classifier: it has no classes for a word to count towards")
    ids = source_tensor(checkpoint, sentence, pads=pads)[0].tolist()
    words = words_of(checkpoint.tokenizer.sequence(ids))
    instead = [checkpoint.special.mask] if isinstance(checkpoint.config, PictureConfig) else []
    shortened = [ids[: word.start] + instead + ids[word.end :] for word in words]
    probabilities = _classify(checkpoint, [ids, *shortened])
    return LeaveOneOut(checkpoint.config.class_names, words, probabilities[0], probabilities[1:])


def _classify(checkpoint: Checkpoint, texts: list[list[int]]) -> np.ndarray:
    """softmax of the class logits: [text, class]. Shorter texts are padded, which the mask makes harmless."""
    pad_id = checkpoint.config.pad_id
    if pad_id is None:
        parts = [torch.tensor([ids]) for ids in texts]
    else:
        longest = max(len(ids) for ids in texts)
        parts = torch.tensor([ids + [pad_id] * (longest - len(ids)) for ids in texts]).split(_BATCH)
    with torch.inference_mode(), fast_path():
        logits = torch.cat([checkpoint.model(part) for part in parts])
    return logits.softmax(dim=-1).cpu().numpy()
