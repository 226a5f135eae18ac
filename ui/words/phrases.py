"""Whole English sentences and lines in another language, by a table: ``"head {head}" = "tête {head}"``.

For what is written where no language is known: ``charts/`` and ``transformer/`` write English, for notebooks too. The
tables are ``ui/words/<language>/charts.toml`` and ``errors.toml``; ``{…}`` stands for a number, a token or a name,
which is taken over; ``{where}``, ``{problem}`` and ``{problems}`` (several, with "; " between them) for words that are
looked up as well. What is not in a table stays as it is.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from ui.words import texts
from ui.words.translations import ENGLISH, read

Say = Callable[[str], str | None]

LINE_END = re.compile(r"(<br>|\n)")
AROUND = re.compile(r"(?s)(\s*(?:<b>)?)(.*?)((?:</b>)?(?:<extra></extra>)?\s*)")  # what may stand around a line's words
WORD = re.compile(r"[A-Za-z]{2}")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_LOOKED_UP = ("where", "problem", "problems")


def speaker(name: str) -> Say | None:
    """What says a text in the language of this session by the table of that name, ``None`` for what is not in it; in
    English there is nothing to say: ``None``."""
    language = texts.language()
    if language == ENGLISH:
        return None
    return speaker_of(read(texts.ROOT, name, language))


def speaker_of(table: Mapping[str, str]) -> Say:
    """As ``speaker``, for a table from English to another language."""
    return _compiled(tuple(table.items()))


@lru_cache(maxsize=16)
def _compiled(pairs: tuple[tuple[str, str], ...]) -> Say:
    exact = {english: said for english, said in pairs if not _PLACEHOLDER.search(english)}
    patterns = sorted(
        (_Pattern(english, said) for english, said in pairs if english not in exact),
        # What holds another sentence comes first: that one could take the words around it for its own. Then what says
        # more about the text.
        key=lambda pattern: (not pattern.holds_another, -pattern.n_letters),
    )

    @lru_cache(maxsize=4096)
    def line(words: str) -> str | None:
        before, inner, after = AROUND.fullmatch(words).groups()
        said = exact.get(inner)
        if said is None:
            said = next((found for pattern in patterns if (found := pattern.say(inner, line)) is not None), None)
        return None if said is None else f"{before}{said}{after}"

    def say(words: str) -> str | None:
        if not WORD.search(words):
            return None
        parts = LINE_END.split(words)
        found = [line(part) for part in parts]
        if all(one is None for one in found):
            return None
        return "".join(part if one is None else one for one, part in zip(found, parts, strict=True))

    return say


class _Pattern:
    """ "head {head}" → "tête {head}": what stands in the braces is taken over as it is."""

    def __init__(self, english: str, said: str) -> None:
        pieces = _PLACEHOLDER.split(english)
        names = pieces[1::2]
        self.literal = max(pieces[::2], key=len)
        self.n_letters = sum(map(len, pieces[::2]))
        self.holds_another = any(name in _LOOKED_UP for name in names)
        self._expression = re.compile(
            "".join(f"(?P<{part}>.+?)" if index % 2 else re.escape(part) for index, part in enumerate(pieces)),
            re.DOTALL,
        )
        self._said, self._names = said, names

    def say(self, words: str, inner: Say) -> str | None:
        if self.literal not in words or not (found := self._expression.fullmatch(words)):
            return None
        taken = {name: _within(name, found[name], inner) for name in self._names}
        return _PLACEHOLDER.sub(lambda name: taken.get(name[1], name[0]), self._said)


def _within(name: str, words: str, say: Say) -> str:
    """What stands in ``{name}``, with its own words said where they are words of the table."""
    if name not in _LOOKED_UP:
        return words
    parts = words.split("; ") if name == "problems" else [words]
    return (say("; ") or "; ").join(say(part) or part for part in parts)
