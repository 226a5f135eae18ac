"""The word that is masked in a sentence without a blank, for a model that fills in blanks.

Such a model was trained to predict words that it cannot read. It mostly repeats the words that it can read, so a
sentence shows what the model does only once a word is masked.

    >>> import transformer
    >>> masked = masked_word(transformer.load("checkpoints/bert-en"), "The cat sat on the mat.")
    >>> masked.text, masked.sentence
    ('mat', 'The cat sat on the ___.')
"""

from __future__ import annotations

import re
from typing import NamedTuple

from transformer.errors import InputError
from transformer.files.checkpoints import Checkpoint
from transformer.runs.inputs import source_tensor
from transformer.runs.traces import Trace
from transformer.text.sentence_pair import BETWEEN
from transformer.text.tokenizer import BLANK

NONE = "none"  # the choice of no word: the model reads the whole sentence
_TYPED_BLANK = "___"
_LETTERS = 3  # of a word that is worth guessing
_WORD = re.compile(r"\w+(?:['’-]\w+)*")


class MaskedWord(NamedTuple):
    """A word by its number among ``words_in`` the sentence, and the sentence with a blank in its place."""

    number: int
    text: str
    sentence: str


def words_in(sentence: str) -> tuple[str, ...]:
    """Return the words of a typed sentence, each of which can be masked."""
    return tuple(_WORD.findall(sentence))


def masks_a_word(checkpoint: Checkpoint, sentence: str) -> bool:
    """Return whether a word of the sentence can be masked: it has no blank, and the model fills in blanks.

    Two sentences are read whole, because the model predicts whether the second follows the first.
    """
    config = checkpoint.config
    if not config.fills_blanks or checkpoint.special.mask is None:
        return False
    return not (BLANK.search(sentence) or (config.predicts_next_sentence and BETWEEN in sentence))


def masked_word(checkpoint: Checkpoint, sentence: str, chosen: str = "") -> MaskedWord | None:
    """Return the masked word of a sentence; ``None`` if the model reads all of it.

    Args:
        checkpoint: The model.
        sentence: The typed text.
        chosen: The number of the word, or ``NONE``. Otherwise it is the last word of at least three letters that is a
            single token, so that every token keeps its position.
    """
    if chosen == NONE or not masks_a_word(checkpoint, sentence):
        return None
    words = [_mask(sentence, number, word) for number, word in enumerate(_WORD.finditer(sentence))]
    if chosen.isdecimal() and int(chosen) < len(words):
        return words[int(chosen)]
    return next((word for word in reversed(words) if _is_worth_guessing(checkpoint, sentence, word)), None)


def hidden_id(trace: Trace, typed: str) -> int | None:
    """Return the id of the token in ``typed`` that a mask replaces; ``None`` unless it is exactly one."""
    run, source = trace.run, trace.source
    if typed == trace.sentence or run is None or source is None:
        return None
    try:
        whole = source_tensor(trace.checkpoint, typed, pads=run.source_pads)[0].tolist()
    except InputError:  # with the word, the text may be too long
        return None
    read = source.ids
    hidden = [one for one, other in zip(whole, read, strict=False) if one != other]
    return hidden[0] if len(whole) == len(read) and len(hidden) == 1 else None


def _mask(sentence: str, number: int, word: re.Match[str]) -> MaskedWord:
    return MaskedWord(number, word[0], sentence[: word.start()] + _TYPED_BLANK + sentence[word.end() :])


def _is_worth_guessing(checkpoint: Checkpoint, sentence: str, word: MaskedWord) -> bool:
    """Return whether a word has enough letters and is exactly one token, which the mask replaces."""
    if len(word.text) < _LETTERS or not word.text.isalpha():
        return False
    try:
        whole, read = (source_tensor(checkpoint, text)[0].tolist() for text in (sentence, word.sentence))
    except InputError:  # the page says so when it reads the sentence
        return False
    changed = [after for before, after in zip(whole, read, strict=False) if before != after]
    return len(whole) == len(read) and changed == [checkpoint.special.mask]
