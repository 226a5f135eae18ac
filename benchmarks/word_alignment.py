"""Word alignment by a translation model's heads, compared with IBM models 1 and 2.

    python -m benchmarks.word_alignment --train PAIRS.tsv --checkpoint checkpoints/en-fr

PAIRS.tsv has an English and a French sentence per line, separated by a tab. Prints the alignment error rate over the
pairs aligned by hand (``transformer/heads/sentences/pairs-en-fr.txt``); lower is better.
"""

import argparse
import re
from pathlib import Path

from transformer.files.checkpoints import load
from transformer.heads.annotated_words import aligned_pairs, error_rate
from transformer.heads.role_files import load_corpus_roles
from transformer.scores.ibm_models import IBMModel

WORD = re.compile(r"\w+(?:-\w+)*['’]?|[^\w\s]")


def words(text: str) -> list[str]:
    """Split a text into lower-case words, elided words with their apostrophe, and punctuation marks."""
    return [word.lower().replace("’", "'") for word in WORD.findall(text)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", required=True, type=Path)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--limit", type=int, default=10_000, help="pairs that are read (default 10,000)")
    options = parser.parse_args()
    lines = options.train.read_text(encoding="utf-8").splitlines()[: options.limit]
    train = [tuple(words(side) for side in line.split("\t")[:2]) for line in lines]
    train = [(source, target) for source, target in train if source and target]
    pairs = aligned_pairs()
    for name, second in (("IBM model 1", False), ("IBM model 2", True)):
        model = IBMModel(train, second=second)
        chosen = {
            index: model.links([word.lower() for word in pair.source], [word.lower() for word in pair.target])
            for index, pair in enumerate(pairs)
        }
        print(f"{name}, {len(train):,} pairs: AER {error_rate(chosen, pairs):.3f}")
    saved = load_corpus_roles(load(options.checkpoint))
    heads = saved.roles.of("decoder", "cross") if saved else ()
    rates = [(rate, name, head.layer, head.head) for head in heads for name, rate in head.measured.error_rates.items()]
    for rate, name, layer, head in sorted(rates)[:5]:
        print(f"cross-attention layer {layer} head {head}, {name}: AER {rate:.3f}")


if __name__ == "__main__":
    main()
