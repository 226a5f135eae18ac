"""Prediction of a next-sentence head for two sentences, shown on Overview, Decoding and Compare."""

from charts.toolkit.style import three_digits, three_digits_alike
from transformer.config import NEXT_SENTENCE
from transformer.runs.next_sentence import NextSentenceAnswer
from ui.show.chips import Chip, ChipRow, chips
from ui.words.texts import common


def next_sentence_line(found: NextSentenceAnswer) -> str:
    """Return the class of a pair and its probability, as Markdown."""
    return common(f"next_sentence.{found.name}", probability=three_digits(found.probability))


def next_sentence_chips(found: NextSentenceAnswer) -> None:
    """Draw both classes with their probabilities."""
    shares = three_digits_alike(found.probabilities)
    classes = zip(NEXT_SENTENCE, shares, found.probabilities, strict=True)
    chips([ChipRow("", tuple(Chip(name, share, share=value) for name, share, value in classes))], key="next sentence")
