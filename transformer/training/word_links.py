"""Which word of a sentence translates which of another, for a whole corpus, by nothing but the corpus itself.

IBM model 2 (``roles.ibm_models``) is fitted in both directions, and the two are joined by "grow-diag" (Koehn, Och &
Marcu 2003, "Statistical Phrase-Based Translation", §4.1, without its final step): from the links that both have, to
those neighbours that either has. The links are kept in a file, one pair a line, as ``0-0 1-2``: source-target.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from transformer.disk.whole_files import write_text
from transformer.roles.ibm_models import IBMModel
from transformer.text.tokenizer import Tokenizer

WORD = re.compile(r"\w+(?:-\w+)*['’]?|[^\w\s]")
FILE = "alignments.txt"
Link = tuple[int, int]  # (source, target)


def words(text: str) -> list[str]:
    """Lower case; a word, an elided word with its apostrophe, or a mark."""
    return [word.lower().replace("’", "'") for word in WORD.findall(text)]


def corpus_links(pairs: Sequence[tuple[str, str]], folder: Path) -> list[tuple[Link, ...]]:
    """The links of every pair of sentences: those in the folder's file, or found, and written there.

    Raises ``ValueError`` for a file of another corpus.
    """
    path = folder / FILE
    if not path.is_file():
        found = found_links([(words(source), words(target)) for source, target in pairs])
        write_text(path, "".join(" ".join(f"{s}-{t}" for s, t in sorted(links)) + "\n" for links in found))
    lines = path.read_text(encoding="utf-8").splitlines()
    if len(lines) != len(pairs):
        raise ValueError(f"{path} has {len(lines)} lines, but the corpus has {len(pairs)} pairs; remove the file")
    return [tuple((int(s), int(t)) for s, t in (link.split("-") for link in line.split())) for line in lines]


def found_links(pairs: Sequence[tuple[Sequence[str], Sequence[str]]]) -> list[set[Link]]:
    """Fit both directions to these pairs of words, and join what they say."""
    forward = IBMModel(pairs, second=True)
    one_way = [_links(forward.links(source, target)) for source, target in pairs]
    del forward  # a model of a large corpus takes gigabytes
    backward = IBMModel([(target, source) for source, target in pairs], second=True)
    other_way = [{(s, t) for t, s in _links(backward.links(target, source))} for source, target in pairs]
    return [grow_diagonal(one, other) for one, other in zip(one_way, other_way, strict=True)]


def grow_diagonal(forward: set[Link], backward: set[Link]) -> set[Link]:
    """What both have, and then, again and again, every link of either that touches one (also by a corner), as long as
    one of its two words has no link yet."""
    joined = forward & backward
    grown = True
    while grown:
        grown = False
        for source, target in sorted((forward | backward) - joined):
            free = all(s != source for s, _ in joined) or all(t != target for _, t in joined)
            if free and any(max(abs(s - source), abs(t - target)) == 1 for s, t in joined):
                joined.add((source, target))
                grown = True
    return joined


def token_links(
    tokenizer: Tokenizer, example: tuple[str, str, Sequence[Link]], source: Sequence[int], target: Sequence[int]
) -> tuple[Link, ...]:
    """Links between words, as links between their tokens: (place in ``source``, row that predicts the target token).

    ``source`` ends with ``</s>``, ``target`` stands between ``<s>`` and ``</s>``: the row that predicts a token has the
    number of that token without ``<s>``.
    """
    sources, targets = _tokens_of(tokenizer, example[0], source[:-1]), _tokens_of(tokenizer, example[1], target[1:-1])
    return tuple((s, t) for one, other in example[2] for s in sources[one] for t in targets[other])


def _tokens_of(tokenizer: Tokenizer, text: str, ids: Sequence[int]) -> list[list[int]]:
    """Of every word the tokens that hold a part of it; a text begins with a space nobody typed.

    By bytes, unlike ``roles.word_spans``: a letter whose bytes lie in two tokens belongs to both.
    """
    ends, end = [], 0
    for id in ids:
        end += len(tokenizer.token_bytes[id])
        ends.append(end)
    found, token = [], 0
    for match in WORD.finditer(text):
        begin = 1 + len(text[: match.start()].encode())
        end = begin + len(match[0].encode())
        while ends[token] <= begin:
            token += 1
        last = token
        while ends[last] < end:
            last += 1
        found.append(list(range(token, last + 1)))
    return found


def _links(chosen: Sequence[int]) -> set[Link]:
    return {(source, target) for target, source in enumerate(chosen) if source >= 0}
