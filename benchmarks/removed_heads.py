"""How many translations change without each head, one head at a time.

    python -m benchmarks.removed_heads --data PAIRS.tsv --checkpoint checkpoints/en-fr

PAIRS.tsv has an English and a French sentence per line, separated by a tab. Every head is removed in turn, the first
sentences are translated greedily again, and the program prints the share of translations that differ from the original.
"""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from transformer.files.checkpoints import Checkpoint, load
from transformer.models import Model
from transformer.runs.head_places import Head, all_heads
from transformer.training.corpora import group_references, read_pairs
from transformer.training.validation import greedy_texts

CONSEQUENTIAL = 0.1  # a head whose removal changes at least this share of the translations counts


@contextmanager
def without_head(model: Model, head: Head) -> Iterator[None]:
    """Remove a head by setting its columns of W_O to 0; faster than ``ablate_head``, with the same result.

    An edit needs the module of each probe; with changed weights, a batch runs on the fast path.
    """
    attention = model.get_submodule(f"{head.stack}.layers.{head.layer}.{head.kind}_attention")
    weight = attention.output_projection.weight.data
    width = weight.shape[1] // model.config.heads_in(head.stack)
    columns = weight[:, head.head * width : (head.head + 1) * width]
    original = columns.clone()
    columns.zero_()
    try:
        yield
    finally:
        columns.copy_(original)


def changed_shares(checkpoint: Checkpoint, sources: Sequence[str]) -> dict[Head, float]:
    """Return, for each head, the share of ``sources`` whose greedy translation changes without it."""
    model, tokenizer = checkpoint.model, checkpoint.tokenizer
    original = greedy_texts(model, tokenizer, sources)
    shares = {}
    for head in all_heads(checkpoint.config):
        with without_head(model, head):
            changed = greedy_texts(model, tokenizer, sources)
        shares[head] = sum(one != other for one, other in zip(original, changed, strict=True)) / len(sources)
    return shares


def main() -> None:
    """Print a line per head, the largest share first, and how many heads count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--limit", type=int, default=200, help="sentences that are translated (default 200)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    checkpoint = load(options.checkpoint)
    if checkpoint.config.kind != "encoder-decoder":
        parser.error(f"{options.checkpoint} is a {checkpoint.config.kind} model; only an encoder-decoder translates")
    sources = group_references(read_pairs(options.data))[0][: options.limit]
    shares = changed_shares(checkpoint, sources)
    for head, share in sorted(shares.items(), key=lambda item: -item[1]):
        print(f"{head.stack} {head.kind} layer {head.layer} head {head.head}: {share:.1%}")
    count = sum(share >= CONSEQUENTIAL for share in shares.values())
    print(f"{count} of {len(shares)} heads change at least {CONSEQUENTIAL:.0%} of {len(sources)} translations")


if __name__ == "__main__":
    main()
