"""Sentences of Python and safetensors about a broken file: templates for messages written elsewhere."""

import re

LONGEST = 2000  # characters; an error may quote text from a file that was made to be slow to search


def N_(template: str) -> str:
    """Mark a template that is translated elsewhere, as in gettext."""
    return template


# Templates that contain another sentence come before those that could match its surrounding words.
TEMPLATES = (
    # tomllib
    N_("{problem} (at line {line}, column {column})"),
    N_("{problem} (at end of document)"),
    N_("Invalid value"),
    N_("Invalid statement"),
    N_("Invalid initial character for a key part"),
    N_("Unterminated string"),
    N_("Illegal character {character}"),
    N_("Found invalid character {character}"),
    N_("Expected '=' after a key in a key/value pair"),
    N_("Expected ']' at the end of a table declaration"),
    N_("Expected ']]' at the end of an array declaration"),
    N_("Expected newline or end of document after a statement"),
    N_("Expected {expected}"),  # must follow the more specific templates
    N_("Cannot overwrite a value"),
    N_("Cannot declare {key} twice"),
    N_("Duplicate inline table key {key}"),
    N_("Unclosed array"),
    N_("Unclosed inline table"),
    N_("Unescaped '\\' in a string"),
    # json
    N_("Expecting value: line {line} column {column} (char {char})"),
    N_("Expecting property name enclosed in double quotes: line {line} column {column} (char {char})"),
    N_("Expecting {sign} delimiter: line {line} column {column} (char {char})"),
    N_("Unterminated string starting at: line {line} column {column} (char {char})"),
    N_("Extra data: line {line} column {column} (char {char})"),
    # Python: a text that is not UTF-8, and limits of JSON
    N_("'utf-8' codec can't decode byte {byte} in position {position}: {problem}"),
    N_("invalid start byte"),
    N_("invalid continuation byte"),
    N_("unexpected end of data"),
    N_("maximum recursion depth exceeded while decoding a JSON {what} from a unicode string"),
    N_(
        "Exceeds the limit ({most} digits) for integer string conversion: value has {count} digits; "
        "use {function} to increase the limit"
    ),
    # safetensors
    N_("Error while deserializing header: {problem}"),
    N_("Error while deserializing: {problem}"),
    N_("header too small"),
    N_("header too large"),
    N_("invalid header length"),
    N_("invalid header deserialization"),
    N_("incomplete metadata, file not fully covered"),
    N_("invalid JSON in header: {what}"),
    N_("invalid UTF-8 in header: {what}"),
)


def found_template(sentence: str) -> tuple[str, dict[str, str]] | None:
    """Return the template of a sentence and its values; ``None`` if no template matches."""
    if len(sentence) > LONGEST:
        return None
    found = ((template, pattern.fullmatch(sentence)) for template, pattern in _EXPRESSIONS)
    return next(((template, match.groupdict()) for template, match in found if match), None)


def expression(template: str) -> re.Pattern[str]:
    """Return an expression for every sentence made from a template, with a group for each ``{…}``."""
    known: set[str] = set()
    found = ""
    for index, piece in enumerate(re.split(r"\{(\w+)\}", template)):
        if index % 2 == 0:
            found += re.escape(piece)
        else:
            found += f"(?P={piece})" if piece in known else f"(?P<{piece}>.+?)"
            known.add(piece)
    return re.compile(found, re.DOTALL)


_EXPRESSIONS = [(template, expression(template)) for template in TEMPLATES]
