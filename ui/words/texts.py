"""Texts, kept outside the code: ``views/<page>/<language>.toml`` for a page, ``ui/words/<language>`` for the frame.

A language is a folder of ``ui/words`` whose ``common.toml`` says its own name: ``[language] name = "Français"``. What
it does not say, English says in its place (``ui/words/translations.py``). Which language is spoken belongs to the
browser session that the running script serves; where there is none (tests, notebooks), it is English.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from charts.toolkit.numbers import whole
from ui.words.once_a_run import once_a_run
from ui.words.translations import ENGLISH, names_of_languages, read, read_for_all

ROOT = Path(__file__).resolve().parents[2]  # of ui/words and views

_spoken: ContextVar[str] = ContextVar("the language of this run, or of a file being made", default="")
_language_of_run: Callable[[], str] = lambda: ENGLISH  # noqa: E731  (replaced by ui/shell/focus.py)

# Everything that CommonMark, Streamlit's directives (:red[…], :material/…:, $TeX$) or HTML could read as markup.
_PICTURES = re.compile(r"!+\[")  # all of them: of "!![" one would be left
_MARKUP = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:^=&])")
# What Streamlit 1.67 replaces in text that has been parsed, so that a backslash does not stop it: addresses and e-mail
# addresses become links, ":material/home:" an icon, "->" an arrow. It never finds what lies in two nodes of the tree.
_REPLACED = re.compile(r"(?<=:)(?=\S|$)|(?=@)|(?<=w)(?=\.)|^(?=\.\w)|(?<=[-<>=~])(?=[-<>=~])", re.IGNORECASE)
_NODE_BREAK = ":color[]{}"  # an empty <span>: nothing is drawn, and nothing is copied with the text
_SPACE_AT_THE_ENDS = re.compile(r"^[ \t\r\n]+|[ \t\r\n]+$|[\r\n]+")  # Markdown would drop it or read it as syntax


class PageText(Mapping[str, str]):
    """Paragraphs of one page by name; a missing name is an error that lists the names there are."""

    def __init__(self, name: str, values: Mapping[str, object], language: str = ENGLISH) -> None:
        self._name = name
        self.language = language
        self._values = dict(values)
        for key in ("title", "question"):
            if not isinstance(self._values.get(key), str) or not self._values[key].strip():
                raise ValueError(f"views/{name}/en.toml needs a text {key!r}")
        look_for = self._values.get("look_for")
        if not isinstance(look_for, list) or len(look_for) != 3 or set(map(type, look_for)) != {str}:
            raise ValueError(f"views/{name}/en.toml needs look_for = three sentences; it has {look_for!r}")

    @property
    def name(self) -> str:
        """Of the page, i.e. of its file."""
        return self._name

    @property
    def title(self) -> str:
        return self._values["title"]

    @property
    def question(self) -> str:
        return self._values["question"]

    @property
    def look_for(self) -> tuple[str, ...]:
        return tuple(self._values["look_for"])

    def look_for_of(self, traits: Collection[str]) -> tuple[str, ...]:
        """The three sentences for a model of these ``traits`` (``ui.shell.selectors.traits_of``): the table
        ``[look_for_where]`` has another one, by place and trait, where the usual one would be wrong."""
        sentences = list(self.look_for)
        for key, sentence in self._values.get("look_for_where", {}).items():
            place, _, trait = key.partition(" ")
            if trait in traits:
                sentences[int(place) - 1] = sentence
        return tuple(sentences)

    def instead(self, *tables: str) -> "PageText":
        """The same page with what its ``tables`` say, the last one first, in the place of what would be wrong."""
        values = dict(self._values)
        for table in tables:
            values |= self._values.get(table, {})
        return PageText(self._name, values, self.language)

    def __getitem__(self, key: str) -> str:
        try:
            return self._values[key]
        except KeyError:
            raise KeyError(
                f"views/{self._name}/en.toml has no text {key!r}; it has {', '.join(sorted(self._values))}"
            ) from None

    def __iter__(self):
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@dataclass(frozen=True)
class Example:
    """A sentence that shows something; ``target`` is empty where the model is to answer by itself."""

    label: str
    sentence: str
    shows: str
    target: str = ""


def language() -> str:
    """The code of the language that is spoken in this run."""
    return _spoken.get() or _language_of_run()


def speak(code: str) -> None:
    """Speak that language from now on in this run, whose thread nobody else has: a run needs hundreds of texts, and
    access to the session is slow."""
    _spoken.set(code)


def slider_format() -> str | None:
    """Of a slider with decimals. Streamlit writes a point, or what the browser's own language has; the app's language
    it does not ask, so that English stays with the point."""
    return None if language() == ENGLISH else "localized"


@contextmanager
def speaking(code: str) -> Iterator[None]:
    """Speak that language in what is done inside: for a file that is made where no run of a session is at hand."""
    before = _spoken.set(code)
    try:
        yield
    finally:
        _spoken.reset(before)


def languages() -> dict[str, str]:
    """The names of the languages that there are, each in itself, by code; English first."""
    return names_of_languages(ROOT / "ui" / "words")


def take_language_from(source: Callable[[], str]) -> None:
    """``source()`` gives the code for whoever is being served where this run does not ``speak`` yet: in callbacks and
    fragments. It must not remember anyone."""
    global _language_of_run
    _language_of_run = source


def page_text(name: str) -> PageText:
    """The text of one page. Raises ``ValueError`` without title, question and three ``look_for`` sentences."""
    return _page_text(name, language())


def page_texts(name: str) -> tuple[PageText, ...]:
    """The text of one page in every language, the spoken one first: an address may have been made in any of them."""
    return tuple([_page_text(name, code) for code in dict.fromkeys((language(), *languages()))])


@once_a_run
def _page_text(name: str, code: str) -> PageText:
    return PageText(name, read(ROOT, name, code), code)


def common(key: str, **values: object) -> str:
    """A text of the frame by its dotted name: ``common("sidebar.sentence")``; ``values`` fill its ``{…}``."""
    section, _, name = key.partition(".")
    text = read(ROOT, "common", language())[section][name]
    return text.format(**values) if values else text


def quoted(words: str, *, most: int = 60) -> str:
    """What somebody typed or sent, in quotation marks, in a sentence about it: the beginning of what is long."""
    return repr(words if len(words) <= most else f"{words[:most]}…")


def counted(number: int, what: str) -> str:
    """ "1 token", "3 tokens", in the language of this run: ``what`` is a name in the section [count] of common.toml."""
    return common(f"count.{what}" if number == 1 else f"count.{what}s", count=whole(number))


def numbered(number: int, name: str) -> str:
    """One of a list from which somebody chooses: "4: ·the"."""
    return common("count.of_a_list", number=number, name=name)


def model_sentences() -> Mapping[str, Any]:
    """What models read, the same in every language: ``ui/words/sentences.toml``."""
    return read_for_all(ROOT, "sentences")


def examples(kind: str = "") -> tuple[Example, ...]:
    """Of models that come without examples of their own: all, or for one ``kind`` its own first, without those that say
    something to another kind only."""
    shown, first = read(ROOT, "examples", language()), model_sentences()["first_example"]
    own = first.get(kind, "")
    names = [name for name in model_sentences()["example"] if not kind or name == own or name not in first.values()]
    sentences = model_sentences()["example"]
    return tuple(
        Example(sentence=sentences[name], **shown[name]) for name in sorted(names, key=lambda name: name != own)
    )


def pictures() -> tuple[tuple[str, str], ...]:
    """(what it shows, the picture as text): test pictures for models that read pictures."""
    return tuple(tuple(line.split()) for line in model_sentences()["pictures"].split("\n"))


def other_pictures(sentence: str) -> tuple[tuple[str, str], ...]:
    """One test picture of each digit, (what it shows, the picture as text), without the one that is looked at."""
    found = {label: text for label, text in reversed(pictures()) if text != sentence}
    return tuple(sorted(found.items()))


def without_pictures(markdown: str) -> str:
    """Somebody's Markdown in which a picture is a link: a browser asks its server only when a reader clicks."""
    return _PICTURES.sub("[", markdown)


def in_code(text: str) -> str:
    """What stands between two backticks: one of its own would end the code, and what follows would be markup."""
    return text.replace("`", "ˋ")


def as_plain(text: str) -> str:
    """Escape ``text`` so that ``st.markdown`` and its relatives show exactly these characters.

    Every text from outside goes through here: sentences, tokens, names, notes, errors.
    ``charts.documents.document_parts.marked`` reads the result, too.
    """
    escaped = _NODE_BREAK.join(_MARKUP.sub(r"\\\1", part) for part in _REPLACED.split(text))
    return _SPACE_AT_THE_ENDS.sub(lambda found: "".join(f"&#{ord(character)};" for character in found[0]), escaped)
