"""Sentences of the same length that differ in one word, which a page offers as its second sentence."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from transformer import Checkpoint, InputError
from transformer.interventions.experiment import typed_ids
from transformer.predictions.answer_probabilities import read_answer
from ui.compute.store import store
from ui.page.page import Page
from ui.shell import choice
from ui.shell.focus import change, start_of
from ui.words.texts import model_sentences

_MOST = 5  # number of pairs
_LONGEST = 200  # characters of a sentence in which words are replaced


def suggested_sentence(p: Page) -> str:
    """Return the first prepared sentence with one word changed; "" if none fits."""
    return next((other for clean, other in ready_pairs(p) if clean == p.sentence), "")


def ready_pairs(p: Page) -> tuple[tuple[str, str], ...]:
    """Return the (clean, corrupted) pairs that fit this model, those of the page's sentence first."""
    return store.get(p.run, "swaps", lambda: offered_pairs(p.checkpoint, p.sentence, read_answer(p.trace).text))


def take_pair(key: str, pairs: Mapping[str, Sequence[str]], label: str) -> None:
    """Show both sentences of the pair of this ``label``, the second in the control ``key`` (a callback)."""
    first, second = pairs[label]
    choice.put(key, second)
    change(sentence=first, target="")


def offered_pairs(checkpoint: Checkpoint, sentence: str, answer: str) -> tuple[tuple[str, str], ...]:
    """Return (clean, corrupt) pairs, those of this sentence first, beginning with words of the output."""
    own = [(sentence, other) for other in _swap_words(sentence, answer) if _fits(checkpoint, sentence, other)]
    task = start_of(sentence, checkpoint.framing.starts)  # prepared pairs begin with the task as well
    ready = [tuple(task + each for each in pair.values()) for pair in model_sentences()["pair"].values()]
    ready += [pair[::-1] for pair in ready if pair[1] == sentence]
    found = [pair for pair in ready if pair[0] == sentence and _fits(checkpoint, *pair)] + own
    found = found[:_MOST] if found else [(sentence, other) for other in _swap_any_word(checkpoint, sentence)]
    others = [pair for pair in ready if sentence not in pair and _fits(checkpoint, *pair)]
    return tuple(dict.fromkeys(found[:3] + others))[:_MOST]


def _swap_words(sentence: str, answer: str) -> Iterator[str]:
    """Yield the sentence with one word replaced by another of its group, words of the output first.

    Every word is replaced once before any is replaced a second time.
    """
    found: list[list[str]] = []
    repeated = set(re.findall(r"\w+", answer))
    groups = [group.split() for group in model_sentences()["swap"]]
    for group in sorted(groups, key=repeated.isdisjoint):
        for word in sorted(group, key=lambda word: word not in repeated):
            others = [other for other in group if other != word]
            if re.search(rf"\b{word}\b", sentence):
                found.append([re.sub(rf"\b{word}\b", other, sentence, count=1) for other in others[:2]])
    for swaps in zip_longest(*found):
        yield from filter(None, swaps)


def _swap_any_word(checkpoint: Checkpoint, sentence: str) -> list[str]:
    """Return the sentence with its last long word replaced by any that fits, if no word has a group."""
    if len(sentence) > _LONGEST:
        return []
    words = [word for group in model_sentences()["swap"] for word in group.split()]
    for place in [found for found in re.finditer(r"[^\W\d_]+", sentence) if len(found[0]) > 2][:-5:-1]:
        for word in words:
            other = sentence[: place.start()] + word + sentence[place.end() :]
            if _fits(checkpoint, sentence, other):
                return [other]
    return []


def _fits(checkpoint: Checkpoint, clean: str, corrupt: str) -> bool:
    try:
        ids = [typed_ids(checkpoint, sentence) for sentence in (clean, corrupt)]
    except InputError:
        return False
    return len(ids[0]) == len(ids[1]) and ids[0] != ids[1]
