"""Texts outside the code, in one TOML file per page or part of the frame, and language.

``views/<page>/<language>.toml`` is for a page, ``ui/words/<language>`` for the frame.
A language is a folder of ``ui/words`` whose ``common.toml`` states its name: ``[language] name = "Français"``. Missing
texts are taken from English (``ui/words/translations.py``). The language is that of the browser session that the
running script serves; without one (tests, notebooks) it is English.
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
from ui.words.translations import ENGLISH, names_of_languages, read_for_all, read_texts

ROOT = Path(__file__).resolve().parents[2]  # the folder that contains ui/words and views

_spoken: ContextVar[str] = ContextVar("the language of this run, or of a file being made", default="")
_language_of_run: Callable[[], str] = lambda: ENGLISH  # noqa: E731  (replaced by ui/shell/focus.py)

# Everything that CommonMark, Streamlit's directives (:red[…], :material/…:, $TeX$) or HTML could read as markup.
_PICTURES = re.compile(r"!+\[")  # all exclamation marks, because "!![" would otherwise remain an image
_MARKUP = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:^=&])")
# What Streamlit 1.67 replaces in parsed text, so that a backslash does not prevent it: addresses and e-mail addresses
# become links, ":material/home:" an icon, "->" an arrow. It never matches across two nodes of the tree.
_REPLACED = re.compile(r"(?<=:)(?=\S|$)|(?=@)|(?<=w)(?=\.)|(?<=www)$|^(?=\.\w)|(?<=[-<>=~])(?=[-<>=~])", re.IGNORECASE)
_NODE_BREAK = ":color[]{}"  # an empty <span>: nothing is drawn, and nothing is copied with the text
_PATCH = re.compile(r"r\d+c\d+")  # as in transformer/pictures/patch_tokenizer.py; hardly any word looks like this
# Space of any kind, which Markdown would drop or read as syntax at the ends, and beside which "**" makes nothing bold.
_SPACE = r"[ \t\r\n\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
_SPACE_AT_THE_ENDS = re.compile(rf"^{_SPACE}+|{_SPACE}+$|[\r\n]+")


class PageText(Mapping[str, str]):
    """Paragraphs of one page by name; a missing name is an error that lists the existing ones."""

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
        """Name of the page, which is that of its file."""
        return self._name

    @property
    def title(self) -> str:
        """Title of the page."""
        return self._values["title"]

    @property
    def question(self) -> str:
        """Question that the page answers."""
        return self._values["question"]

    @property
    def look_for(self) -> tuple[str, ...]:
        """Three sentences about what to notice."""
        return tuple(self._values["look_for"])

    def look_for_of(self, traits: Collection[str]) -> tuple[str, ...]:
        """Return the three sentences for a model with these ``traits`` (``ui.shell.selectors.traits_of``).

        The table ``[look_for_where]`` has replacements, by position and trait, where the usual sentence would be wrong.
        """
        sentences = list(self.look_for)
        for key, sentence in self._values.get("look_for_where", {}).items():
            place, _, trait = key.partition(" ")
            if trait in traits:
                sentences[int(place) - 1] = sentence
        return tuple(sentences)

    def instead(self, *tables: str) -> "PageText":
        """Return the same page with the texts of these ``tables`` instead of its own; the last table wins.

        A table within one of them replaces only the texts that it has: ``[of_pictures.role]``.
        """
        values = dict(self._values)
        for table in tables:
            for key, value in self._values.get(table, {}).items():
                values[key] = {**values[key], **value} if isinstance(value, dict) and key in self._values else value
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
    """An example sentence; ``target`` is empty if the model generates the output itself."""

    label: str
    sentence: str
    shows: str
    target: str = ""


def language() -> str:
    """Return the code of the language of this run."""
    return _spoken.get() or _language_of_run()


def speak(code: str) -> None:
    """Set the language for the rest of this run and its thread.

    A run needs hundreds of texts, and access to the session is slow.
    """
    _spoken.set(code)


def slider_format() -> str | None:
    """Return the format of a slider with decimals, or ``None``.

    Streamlit writes a point, or the separator of the browser's language; it does not know the app's language, so
    English keeps the point.
    """
    return None if language() == ENGLISH else "localized"


@contextmanager
def use_language(code: str) -> Iterator[None]:
    """Use a language within the block, for a file that is made outside of a session's run."""
    before = _spoken.set(code)
    try:
        yield
    finally:
        _spoken.reset(before)


def languages() -> dict[str, str]:
    """Return the names of all languages, each in itself, by code; English first."""
    return names_of_languages(ROOT / "ui" / "words")


def take_language_from(source: Callable[[], str]) -> None:
    """Set the source of the language for callbacks and fragments, where this run has not called ``speak``.

    ``source()`` must not remember anybody.
    """
    global _language_of_run
    _language_of_run = source


def page_text(name: str) -> PageText:
    """Return the text of one page.

    Raises:
        ValueError: If the title, the question or one of three ``look_for`` sentences is missing.
    """
    return _page_text(name, language())


def page_texts(name: str) -> tuple[PageText, ...]:
    """Return the text of one page in every language, the current one first, since addresses may use any."""
    return tuple([_page_text(name, code) for code in dict.fromkeys((language(), *languages()))])


@once_a_run
def _page_text(name: str, code: str) -> PageText:
    return PageText(name, read_texts(ROOT, name, code), code)


def common(key: str, **values: object) -> str:
    """Return a text of the frame by its dotted name, ``common("sidebar.sentence")``, filled in."""
    section, _, name = key.partition(".")
    text = read_texts(ROOT, "common", language())[section][name]
    return text.format(**values) if values else text


def common_table(section: str) -> Mapping[str, str]:
    """Return a table of the frame's texts."""
    return read_texts(ROOT, "common", language())[section]


def quote(words: str, *, most: int = 60) -> str:
    """Return typed or uploaded text in quotation marks, for use in a sentence; long text is shortened."""
    return repr(words if len(words) <= most else f"{words[:most]}…")


def count_text(number: int, what: str) -> str:
    """Return "1 token", "3 tokens" in the language of this run; ``what`` names a text in [count]."""
    return common(f"count.{what}" if number == 1 else f"count.{what}s", count=whole(number))


def number_text(number: int, name: str) -> str:
    """Return the label of an item in a list of choices: "4: ·the"."""
    return common("count.of_a_list", number=number, name=name)


def model_sentences() -> Mapping[str, Any]:
    """Return the sentences for models, the same in every language: ``ui/words/sentences.toml``."""
    return read_for_all(ROOT, "sentences")


def examples(kind: str = "") -> tuple[Example, ...]:
    """Return the examples for models without their own, or those for one ``kind``, its own first.

    With a ``kind``, examples that suit only other kinds are left out.
    """
    shown, first = read_texts(ROOT, "examples", language()), model_sentences()["first_example"]
    own = first.get(kind, "")
    names = [name for name in model_sentences()["example"] if not kind or name == own or name not in first.values()]
    sentences = model_sentences()["example"]
    return tuple(
        Example(sentence=sentences[name], **shown[name]) for name in sorted(names, key=lambda name: name != own)
    )


def pictures() -> tuple[tuple[str, str], ...]:
    """Return test images for models that read images: (what it shows, the image as text)."""
    return tuple(tuple(line.split()) for line in model_sentences()["pictures"].split("\n"))


def without_pictures(markdown: str) -> str:
    """Return third-party Markdown with images replaced by links.

    A browser then contacts the image's server only after a click.
    """
    return _PICTURES.sub("[", markdown)


def unmarked(markdown: str) -> str:
    """Return the Markdown of a lesson without the marks of code and emphasis, for cells of a table."""
    return markdown.replace("`", "").replace("*", "")


def in_code(text: str) -> str:
    """Return text that is safe between backticks: one of its own would end the code."""
    return text.replace("`", "ˋ")


def label_in_words(label: str) -> str:
    """Return a token's label as a sentence names it: an image patch is called that."""
    return common("picture.patch", name=label) if _PATCH.fullmatch(label) else label


def plain_word(label: str) -> str:
    """Return ``label_in_words`` without the dot that stands for a space, for a sentence of plain words."""
    words = label_in_words(label)
    return words[1:] if words.startswith("·") and len(words) > 1 else words


def quoted_word(label: str) -> str:
    """Return ``plain_word`` for a sentence: in quotation marks, a punctuation mark by its name."""
    word, forms = plain_word(label), read_texts(ROOT, "common", language())["quoted"]
    mark = None if word.isalnum() else forms.get(word)
    return mark or forms["word"].format(word=word)


def token_name(label: str) -> str:
    """Return ``label_in_words`` as Markdown that shows exactly these characters."""
    return as_plain(label_in_words(label))


def as_plain(text: str) -> str:
    """Escape ``text`` so that ``st.markdown`` and similar functions show exactly these characters.

    Every third-party text passes through here: sentences, tokens, names, notes, errors.
    ``charts.documents.document_parts.marked`` reads the result as well.
    """
    escaped = _NODE_BREAK.join(_MARKUP.sub(r"\\\1", part) for part in _REPLACED.split(text))
    return _SPACE_AT_THE_ENDS.sub(lambda found: "".join(f"&#{ord(character)};" for character in found[0]), escaped)
