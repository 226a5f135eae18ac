"""British and American spelling of English words, and the most frequent words of a corpus."""

import re
from collections import Counter
from collections.abc import Sequence

# American stem → British stem; _ENDINGS may follow.
_STEMS = {
    "airplane": "aeroplane", "aluminum": "aluminium", "analyze": "analyse", "apologize": "apologise", "armor": "armour",
    "behavior": "behaviour", "canceled": "cancelled", "canceling": "cancelling", "catalog": "catalogue",
    "center": "centre", "color": "colour", "cozy": "cosy", "criticize": "criticise", "defense": "defence",
    "donut": "doughnut", "favor": "favour", "favorite": "favourite", "fiber": "fibre", "flavor": "flavour",
    "fulfill": "fulfil", "gray": "grey", "harbor": "harbour", "honor": "honour", "honorable": "honourable",
    "humor": "humour", "jewelry": "jewellery", "kilometer": "kilometre", "labor": "labour", "liter": "litre",
    "marvelous": "marvellous", "memorize": "memorise", "meter": "metre", "mold": "mould", "mom": "mum",
    "mustache": "moustache", "neighbor": "neighbour", "neighborhood": "neighbourhood", "offense": "offence",
    "organize": "organise", "organization": "organisation", "pajamas": "pyjamas", "paralyze": "paralyse",
    "parlor": "parlour", "plow": "plough", "realize": "realise", "recognize": "recognise", "rumor": "rumour",
    "skeptical": "sceptical", "skillful": "skilful", "sympathize": "sympathise", "theater": "theatre",
    "traveled": "travelled", "traveler": "traveller", "traveling": "travelling", "vapor": "vapour",
}  # fmt: skip
_ENDINGS = "s|d|r|ed|ful|less|ing"


def _pattern(stems: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern for words with one of these stems: group 1 is the stem, group 2 the ending."""
    return re.compile(rf"\b({'|'.join(stems)})((?:{_ENDINGS})?)\b", re.IGNORECASE)


_AMERICAN, _BRITISH = _pattern([*_STEMS]), _pattern([*_STEMS.values()])
_AMERICAN_STEMS = {british: american for american, british in _STEMS.items()}
_WORD = re.compile(r"(?<!\S)[^\W\d_]+")  # only after a space: "ll" in "I'll" is not a word


def other_spelling(text: str) -> str:
    """Return the text in British spelling if it has an American word, else in American spelling."""
    pattern, spellings = (_AMERICAN, _STEMS) if _AMERICAN.search(text) else (_BRITISH, _AMERICAN_STEMS)
    return pattern.sub(lambda match: _replace_stem(match[1], spellings) + match[2], text)


def _replace_stem(stem: str, spellings: dict[str, str]) -> str:
    other = spellings[stem.lower()]
    return other.capitalize() if stem[0].isupper() else other


def frequent_words(texts: Sequence[str], count: int) -> list[str]:
    """Return the ``count`` most frequent words, the most frequent first, and their other spellings.

    Capital letters are ignored, and each word is written as it occurs most often.
    """
    forms = Counter(word for text in texts for word in _WORD.findall(text))
    written = {word.lower(): word for word, _ in reversed(forms.most_common())}
    totals: Counter[str] = Counter()
    for word, number in forms.items():
        totals[word.lower()] += number
    words = [written[word] for word, _ in totals.most_common(count)]
    return [*dict.fromkeys([*words, *(other_spelling(word) for word in words)])]
