"""A pair of sentences in one text: ``I am hungry. || Let us eat.``."""

from transformer.errors import InputError

BETWEEN = "||"  # the mark that is typed between two sentences


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text: two if ``||`` separates them, otherwise one.

    Raises:
        InputError: If there are more than two, or one of two is empty.
    """
    sentences = text.split(BETWEEN)
    if len(sentences) == 1:
        return sentences
    if len(sentences) > 2 or not all(sentence.strip() for sentence in sentences):
        raise InputError(
            f"{BETWEEN} separates two sentences, and there must be one on each side of it: I am hungry. "
            f"{BETWEEN} Let us eat."
        )
    return [sentence.strip() for sentence in sentences]
