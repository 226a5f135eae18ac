"""Texts that have broken similar programs, from public bug reports; every page is tested with them."""

from __future__ import annotations

from transformer.text.tokenizer import SPECIAL_TOKENS

KINDS_OF_TEXT = {
    # Nothing to read, and too much of it.
    "empty": "",
    "blank": "  \n ",
    "too long": "word " * 300,
    "one letter": "x",
    "60 equal letters": "a" * 60,
    "300 equal letters": "a" * 300,
    "punctuation": "!!!",
    "a number": "1e999",
    # Characters made of several code points.
    "emoji": "😀",
    "emoji after a word": "I 😀\n",
    "family joined by ZWJ": "\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL}\u200d\N{BOY} went home.",
    "skin tone": "\N{WAVING HAND SIGN}\U0001f3fd hello",
    "flag of two letters": "\U0001f1eb\U0001f1f7 is France.",
    "half a flag": "\U0001f1eb alone",
    "flag of tags": "\N{WAVING BLACK FLAG}\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    "tags cut off": "\N{WAVING BLACK FLAG}\U000e0067\U000e007f",
    "keycap": "1\ufe0f\u20e3 first",
    "variation selector": "\u2764\ufe0f and \u2764",
    "combining marks": "e\u0301\u0302 cafe\u0301",
    "a tower of marks": "Z" + "\u0301\u0323\u0331" * 12,
    "a mark alone": "\u0301 starts it",
    "Devanagari": "\u0936\u092c\u094d\u0926 \u0915\u094d\u0937",
    "Thai without spaces": "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01",
    "Hangul": "\ud55c\uad6d\uc5b4",
    "Hangul as Jamo": "\u1112\u1161\u11ab\u1100\u116e\u11a8",
    "Chinese": "\u6f22\u5b57 and \U00020000",
    "beyond the first plane": "\U0001d4d0\U0010ffff",
    # Text direction.
    "Arabic": "\u0641\u064a \u0627\u0644\u062d\u062f\u064a\u0642\u0629",
    "Hebrew among English": "the word \u05e9\u05dc\u05d5\u05dd means peace",
    "bidi override": "abc \u202ecba\u202c def",
    "bidi isolate left open": "\u2067 begun and never ended",
    # Spaces, line breaks and invisible characters.
    "lines and tabs": "one\n\n- two\tthree",
    "CR LF": "one\r\ntwo",
    "CR alone": "one\rtwo",
    "line separator": "one\u2028two\u2029three",
    "NUL": "a\x00b",
    "control characters": "bell \x07 escape \x1b[31mred\x1b[0m",
    "byte order mark": "\ufefffirst",
    "zero width": "zero\u200bwidth \u200cjoin\u2060er",
    "no-break space": "10\u00a0km \u202f!",
    "soft hyphen of a PDF": "trans\u00adla\u00adtion",
    "ligatures of a PDF": "\ufb01nal \ufb02ow o\ufb03ce",
    "private use": "\ue000\uf8ff",
    "not a character": "\ufffe\uffff",
    "replacement character": "caf\ufffd",
    # Letters whose case or normalisation changes their length.
    "dotted I": "\u0130stanbul \u0131s",
    "sharp s": "STRASSE Stra\u00dfe \u1e9e",
    "full width": "\uff26\uff55\uff4c\uff4c",
    "curly quotes": "\u201cIt\u2019s\u201d \u2014 he said\u2026",
    # Characters with a meaning for tokenizers.
    "typed subscript": "H\u2082O and the\u2082",
    "middle dot": "\u00b7the \u00b7 cat",
    "SentencePiece's space": "\u2581the \u2581 cat",
    "byte-level space": "\u0120the \u010a cat",
    "WordPiece's mark": "##ing ## play",
    "bytes as cards": "<0x0A> \u27e8F0\u27e9",
    "special tokens": " ".join((*SPECIAL_TOKENS, "[MASK]", "[CLS]", "<|endoftext|>")),
    "blanks": "The ___ man ___",
    # Markup, formulas and templates.
    "markup": "<script>alert(1)</script> **b** $x$ `c` </s> :red[r] [l](http://x) # h",
    "end of a script": "</script><img src=x onerror=alert(1)> <!-- <script>",
    "HTML entities": "&lt;b&gt; &amp; &#0;",
    "formula of a spreadsheet": "=cmd|' /C calc'!A0",
    "plus formula": "+1+1",
    "minus formula": "-2+3",
    "at formula": "@SUM(A1:A9)",
    "LaTeX": "\\frac{1}{2} $$\\int_0^1$$ \\end{document}",
    "braces and percent": "{0} {name} %s \\ \u200b",
    "an address": "see www.example.org/?a=1&b=2#c or mail@example.org",
    "query string": "a&b=c;d#e?f+g%20h%zz",
    "surrogate alone": "a\ud83d b",
    "surrogates the wrong way": "\ude00\ud83d",
}


# Texts that no model of the tests can read; each is refused in a sentence.
UNREADABLE = ("empty", "blank", "too long", "300 equal letters")


def is_sendable(text: str) -> bool:
    """Return whether a browser can send it: a lone surrogate is not valid UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


SENDABLE = {name: text for name, text in KINDS_OF_TEXT.items() if is_sendable(text)}
