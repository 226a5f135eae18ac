"""Guess of a sentence's language from its most common words, enough to tell English from others."""

import re

# Function words that are common in one of these languages and do not occur in the others.
_WORDS = {
    "en": "the of and to is was that it for with he she they are this have not you from were which his her what do my",
    "fr": "le les des et est une dans qui que pas vous nous il elle pour avec sur ce cette sont mon ma mes du au",
    "de": "der das und ist nicht ein eine mit ich sie den dem zu auf für sich auch wir ihr wird sind von bei",
    "es": "el los las una y es por con para pero su del como muy está son yo mi ella",
    "it": "il lo gli della che è di non per una con sono mi ma anche del questo ho nella",
}
COMMON = {language: frozenset(words.split()) for language, words in _WORDS.items()}
_LEAST = 2  # number of words needed for a guess


def guess_language(text: str) -> str:
    """Return the code of the language with the most common words in ``text``; "" if too few, or a tie."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    counts = sorted(((sum(map(known.__contains__, words)), code) for code, known in COMMON.items()), reverse=True)
    (most, language), (second, _) = counts[:2]
    return language if most >= _LEAST and most > second else ""
