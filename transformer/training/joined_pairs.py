"""Longer training examples, joined from two or three short ones.

"Tom left." and "It's raining." become "Tom left because it's raining.", "Tom left, but it's raining." or the two
sentences in a row; their translations are joined in the same way. A model that has only seen short sentences translates
longer ones badly.
"""

import random
import re
from collections import Counter
from collections.abc import Sequence

_FEWEST, _MOST = 2, 8  # words of a sentence to join
_LONGEST = 16  # words of the result
_ANOTHER_SENTENCE = " "
_JOINTS = {  # English → French; the comma before "and" is often left out
    _ANOTHER_SENTENCE: _ANOTHER_SENTENCE,
    " and ": " et ",
    ", and ": " et ",
    ", but ": ", mais ",
    " because ": " parce que ",
}
_WEIGHTS = (3, 2, 2, 3, 2)
_STATEMENT = re.compile(r"[^.?!…:;\"«]+\.")
_FIRST_WORD = re.compile(r"\w+")
_QUE = re.compile(r"parce que (?=[aeiouyéèêàâîôû])", re.IGNORECASE)


def joined_pairs(pairs: Sequence[tuple[str, str]], count: int, *, seed: int) -> list[tuple[str, str]]:
    """Return ``count`` joined examples of random short pairs; the same ``seed`` gives the same ones.

    Raises:
        ValueError: If no pair is a short statement in both languages.
    """
    short = [
        pair for pair in pairs if _FEWEST <= len(pair[0].split()) <= _MOST and all(map(_STATEMENT.fullmatch, pair))
    ]
    if not short:
        raise ValueError(
            f"none of the {len(pairs)} pairs is a statement of {_FEWEST} to {_MOST} words; joined_examples needs some"
        )
    lower = [_lower_case_words(texts) for texts in zip(*pairs, strict=True)]
    generator = random.Random(seed)
    joined: list[tuple[str, str]] = []
    while len(joined) < count:
        english, french = generator.choice(short)
        for _ in range(generator.choice((1, 1, 2))):
            joint = generator.choices(list(_JOINTS), _WEIGHTS)[0]
            next_english, next_french = generator.choice(short)
            english = _join(english, joint, next_english, lower[0])
            french = _QUE.sub("parce qu'", _join(french, _JOINTS[joint], next_french, lower[1]))
        if len(english.split()) <= _LONGEST:
            joined.append((english, french))
    return joined


def _join(first: str, joint: str, second: str, lower: set[str]) -> str:
    if joint == _ANOTHER_SENTENCE:
        return f"{first} {second}"
    word = _FIRST_WORD.match(second)
    if word and word[0].lower() in lower:
        second = second[0].lower() + second[1:]
    return first.removesuffix(".") + joint + second


def _lower_case_words(texts: Sequence[str]) -> set[str]:
    """Return the words that are in lower case inside a sentence, unlike "Tom" and "I"."""
    inside = Counter(word for text in texts for word in _FIRST_WORD.findall(text)[1:])
    return {word for word, count in inside.items() if word.islower() and count >= inside[word.capitalize()]}
