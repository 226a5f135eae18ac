"""Texts outside the code, in one TOML file per page or part of the frame, and language.

``views/<page>/<language>.toml`` is for a page, ``ui/words/<language>`` for the frame.
A language is a folder of ``ui/words`` whose ``common.toml`` states its name: ``[language] name = "Français"``. Missing
texts are taken from English (``ui/words/translations.py``). The language is that of the browser session that the
running script serves; without one (tests, notebooks) it is English.

A text says how the values that are put into it are written: ``{share:%}``, ``{token:word}``. A value that is put into
Markdown is escaped unless code of this app made it ``Marked``: neither a translator nor a forgotten call can let a
reader's text become markup.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from charts.toolkit import numbers, words
from charts.toolkit.numbers import percent, whole
from charts.toolkit.style import signed, three_digits
from transformer.errors import InputError, text_of
from ui.server.settings import without_folders
from ui.words.translations import ENGLISH, names_of_languages, placeholders, read_for_all, read_texts

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


class PageText(dict[str, Any]):
    """Texts of one page by name, never changed; a missing name is an error that lists the existing ones.

    Attributes:
        name: Name of the page, which is that of its file.
        language: Code of the language.
    """

    def __init__(self, name: str, values: Mapping[str, Any], language: str = ENGLISH) -> None:
        super().__init__(values)
        self.name, self.language = name, language
        for key in ("title", "question"):
            if not isinstance(self.get(key), str) or not self[key].strip():
                raise ValueError(f"views/{name}/en.toml needs a text {key!r}")
        look_for = self.get("look_for")
        if not isinstance(look_for, list) or len(look_for) != 3 or set(map(type, look_for)) != {str}:
            raise ValueError(f"views/{name}/en.toml needs look_for = three sentences; it has {look_for!r}")

    @property
    def title(self) -> str:
        """Title of the page."""
        return self["title"]

    @property
    def question(self) -> str:
        """Question that the page answers."""
        return self["question"]

    @property
    def look_for(self) -> tuple[str, ...]:
        """Three sentences about what to notice."""
        return tuple(self["look_for"])

    def look_for_of(self, traits: Collection[str]) -> tuple[str, ...]:
        """Return the three sentences for a model with these ``traits`` (``focus_controls.traits_of``).

        The table ``[look_for_where]`` has replacements, by position and trait, where the usual sentence would be wrong.
        """
        sentences = list(self.look_for)
        for key, sentence in self.get("look_for_where", {}).items():
            place, _, trait = key.partition(" ")
            if trait in traits:
                sentences[int(place) - 1] = sentence
        return tuple(sentences)

    def instead(self, *tables: str) -> "PageText":
        """Return the same page with the texts of these ``tables`` instead of its own; the last table wins.

        A table within one of them replaces only the texts that it has: ``[of_pictures.role]``.
        """
        values = dict(self)
        for table in tables:
            for key, value in self.get(table, {}).items():
                values[key] = {**values[key], **value} if isinstance(value, dict) and key in self else value
        return PageText(self.name, values, self.language)

    def __missing__(self, key: str) -> str:
        raise KeyError(f"views/{self.name}/en.toml has no text {key!r}; it has {', '.join(sorted(self))}")


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

    ``source()`` must not keep a reference to any session.
    """
    global _language_of_run
    _language_of_run = source


def page_text(name: str, *tables: str) -> PageText:
    """Return the text of one page, with those of its ``tables`` instead of its own (``PageText.instead``).

    Raises:
        ValueError: If the title, the question or one of three ``look_for`` sentences is missing.
    """
    return _page_text(ROOT, name, language(), *tables)


def page_texts(name: str) -> tuple[PageText, ...]:
    """Return the text of one page in every language, the current one first, since addresses may use any."""
    return tuple([_page_text(ROOT, name, code) for code in dict.fromkeys((language(), *languages()))])


@cache
def _page_text(root: Path, name: str, code: str, *tables: str) -> PageText:
    text = PageText(name, read_texts(root, name, code), code)
    return text.instead(*tables) if tables else text


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


def named_word(label: str) -> str:
    """Return ``plain_word``, and a punctuation mark by its name: a sentence may end with it."""
    word = plain_word(label)
    return word if any(map(str.isalnum, word)) else quoted_word(label)


def as_plain(text: str) -> str:
    """Escape ``text`` so that ``st.markdown`` and similar functions show exactly these characters.

    Every third-party text passes through here: sentences, tokens, names, notes, errors.
    ``charts.documents.document_parts.markdown_html`` reads the result as well.
    """
    escaped = _NODE_BREAK.join([_MARKUP.sub(r"\\\1", part) for part in _REPLACED.split(text)])
    return _SPACE_AT_THE_ENDS.sub(lambda found: "".join(f"&#{ord(character)};" for character in found[0]), escaped)


# ---- texts with values put in ---------------------------------------------------------------------------------------


def _percent(share: float) -> str:
    """Format a share as a whole percentage, or with one decimal if it is just below 1."""
    return percent(share, decimals=int(0.995 <= share < 0.9995))


_FIELD = re.compile(r"\$[^$]*\$|\{([a-z_]+)(?::([a-z%+0-9]+))?\}")  # nothing within $LaTeX$
_NUMBERS: Mapping[str, Callable[[Any], str]] = {"%": _percent, "3": three_digits, "+": signed, "n": whole}
_LABELS: Mapping[str, Callable[[str], str]] = {"word": quoted_word, "token": label_in_words}  # of tokens


class Marked(str):
    """Markdown that this app has written; any other string is escaped when it is put into a text."""


def filled(text: str, values: Mapping[str, Any], *, markdown: bool) -> str:
    """Return ``text`` with its fields filled in.

    A field names a value and the way it is written: ``%``, ``3`` (significant digits), ``+`` (with its sign) and ``n``
    (a count) for numbers, which are counts or have three digits by default; ``token`` and ``word`` for a token's label;
    ``code`` for one text or several; anything else is a noun of ``[count]``, "3 tokens".

    Raises:
        KeyError: For a field without a value, or an unknown way of writing.
    """

    def written(found: re.Match[str]) -> str:
        name, way = found.groups()
        if not name:
            return found[0]
        value = values[name]
        if way == "code":
            return code(value) if markdown else value if isinstance(value, str) else " ".join(value)
        if isinstance(value, Real) and not isinstance(value, bool):  # NumPy's numbers, too
            way = way or ("n" if isinstance(value, Integral) else "3")
            return _NUMBERS[way](value) if way in _NUMBERS else count_text(int(value), _singular(way))
        plain = _LABELS[way](value) if way else str(value)
        return as_plain(plain) if markdown and not isinstance(value, Marked) else plain

    return _FIELD.sub(written, text)


def common_md(key: str, /, **values: Any) -> Marked:
    """Return a text of the frame by its dotted name as Markdown, with these values."""
    return Marked(filled(common(key), values, markdown=True))


def code(texts: str | Iterable[str]) -> Marked:
    """Return one text, or several with spaces between them, as Markdown's code."""
    return Marked(" ".join(f"`{in_code(text)}`" for text in ([texts] if isinstance(texts, str) else texts)))


def listed(parts: Iterable[str], between: str = ", ") -> Marked:
    """Return several texts as one, each escaped unless it is ``Marked``."""
    return Marked(between.join(part if isinstance(part, Marked) else as_plain(part) for part in parts))


def _singular(noun: str) -> str:
    if noun not in common_table("count") or not noun.endswith("s"):
        raise KeyError(f"a number is written {', '.join(_NUMBERS)} or as a plural of [count], not {noun!r}")
    return noun.removesuffix("s")


# ---- texts of figures and of the browser's scripts: charts/words/<language>.toml -------------------------------------


def problem_text(error: Exception) -> str:
    """Return the message of an error, in English.

    Unless it is about a typed text, it names no folder of a public server.
    """
    return text_of(error) if isinstance(error, InputError) else without_folders(text_of(error))


def browser_words() -> Mapping[str, str]:
    """Return the words of the browser scripts, from English to this session's language; none in English."""
    said = _texts().get("browser", {})
    return {english: text for english, text in said.items() if placeholders(english) == placeholders(text)}


def _texts() -> words.Texts:
    return read_texts(ROOT, "figures", language())


words.read_from(_texts)
numbers.write_for(language)
