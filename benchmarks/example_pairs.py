"""Sentence pairs that are suitable for teaching: words are single tokens and translations are right.

    python -m benchmarks.example_pairs --checkpoint checkpoints/en-fr

The candidates and the words of a right translation are in ``example_pairs.toml``. A pair that the model gets wrong
teaches the wrong thing, and if a word is split into several tokens, the maps of the two sentences do not align.
"""

import argparse
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import transformer

CANDIDATES = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True)
class Candidate:
    """Two sentences of one ``kind``, and what a right translation of each contains."""

    kind: str
    first: str
    second: str
    first_says: tuple[str, ...]
    second_says: tuple[str, ...]


def candidates() -> tuple[Candidate, ...]:
    """Return all candidates, the preferred ones of a kind first."""
    entries = tomllib.loads(CANDIDATES.read_text(encoding="utf-8"))["candidate"]
    return tuple(Candidate(**{**one, **{name: tuple(one[name]) for name in _SAYS}}) for one in entries)


_SAYS = ("first_says", "second_says")


def problems(checkpoint: transformer.Checkpoint, candidate: Candidate) -> list[str]:
    """Return why the pair is unsuitable for this checkpoint; empty if it is suitable."""
    found = []
    for sentence, says in ((candidate.first, candidate.first_says), (candidate.second, candidate.second_says)):
        tokens = transformer.trace(checkpoint, sentence)
        pieces = len(tokens.source) - 1  # without </s>
        if pieces > len(re.findall(r"\w+|[^\w\s]", sentence)):
            found.append(f"{sentence!r} has words in several pieces")
        found += [f"{sentence!r} becomes {tokens.text!r}, without {part!r}" for part in says if part not in tokens.text]
    return found


def choose_pairs(checkpoint: transformer.Checkpoint) -> dict[str, Candidate]:
    """Return the first suitable pair of each kind."""
    first: dict[str, Candidate] = {}
    for candidate in candidates():
        if candidate.kind not in first and not problems(checkpoint, candidate):
            first[candidate.kind] = candidate
    return first


def main() -> None:
    """Print the chosen pairs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", default="checkpoints/en-fr")
    checkpoint = transformer.load(parser.parse_args().checkpoint)
    for candidate in candidates():
        found = problems(checkpoint, candidate)
        print(f"{candidate.kind:10} {'no ' if found else 'yes'} {candidate.first} | {candidate.second}")
        for problem in found:
            print(f"{'':14} {problem}")


if __name__ == "__main__":
    main()
