"""A sentence without a blank, given to a model that fills in blanks: one of its words is hidden.

Such a model reads the words that it predicts, so it repeats a sentence without a blank. With a hidden word the page
shows what the model is for; the reader's sentence stays as it was typed.
"""

from dataclasses import replace

from transformer.runs.inputs import source_tensor
from transformer.runs.next_sentence import is_pair
from transformer.text.tokenizer import BLANK
from transformer.text.word_spans import words_of
from ui.shell.page import Page

HIDDEN = "___"
LETTERS = 3  # of a word that is worth guessing


def with_a_hidden_word(p: Page) -> tuple[Page, str]:
    """Return the page about the sentence without its last longer word, and that word.

    The word is a single token, so every token keeps its position. The page itself and "" are returned if the model
    fills in no blanks, the sentence has one or reads as two sentences, a lesson is running, or no word fits.
    """
    config, sentence = p.checkpoint.config, p.focus.sentence
    fills = config.kind == "encoder-only" and not (config.n_classes or config.encodes_sentences)
    if not fills or p.focus.lesson or BLANK.search(sentence) or is_pair(p.trace):
        return p, ""
    special = p.checkpoint.special
    ids = source_tensor(p.checkpoint, sentence)[0].tolist()
    for word in reversed(words_of(p.checkpoint.tokenizer.sequence(ids))):
        start = sentence.rfind(word.text)
        if word.end - word.start > 1 or start < 0 or len(word.text) < LETTERS or not word.text.isalpha():
            continue
        hidden = f"{sentence[:start]}{HIDDEN}{sentence[start + len(word.text) :]}"
        expected = [*ids[: word.start], special.mask, *ids[word.end :]]
        if source_tensor(p.checkpoint, hidden)[0].tolist() == expected:
            token = p.focus.token if p.token_is_chosen else word.start
            return Page(p.name, replace(p.focus, sentence=hidden, token=token)), word.text
    return p, ""
