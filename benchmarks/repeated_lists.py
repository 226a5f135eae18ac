"""How well a decoder-only model continues a list of words that it has read before.

    python -m benchmarks.repeated_lists --checkpoint checkpoints/gpt-en

Every prompt is a random list of two to six words, written once or twice in full and then begun again ("red blue green
red blue"). The program continues it greedily for two rounds and counts the prompts whose next word is right, those
whose two rounds are right, and those in which a word comes three times in a row.
"""

import argparse
import random
from collections.abc import Iterator, Sequence
from itertools import groupby

import torch

from transformer.files.checkpoints import Checkpoint, load
from transformer.runs.decoding_state import DecodingState
from transformer.text.tokenizer import START_ID

# fmt: off
WORDS = [
    "red", "blue", "green", "dog", "cat", "tea", "milk", "Paris", "Friday", "Mary", "horse", "house", "water",
    "bread", "table", "door", "book", "school", "train", "money", "black", "white", "seven", "three", "summer",
    "winter", "music", "river", "paper", "Tom"
]
# fmt: on
SIZES, COPIES, LISTS = range(2, 7), (1, 2), 100


def prompts(words: Sequence[int], seed: int = 0) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the token ids of each prompt and of the two rounds that should follow."""
    draw = random.Random(seed)
    for size in SIZES:
        for copies in COPIES:
            for _ in range(LISTS):
                chosen = draw.sample(words, size)
                begun = size * copies + draw.randrange(1, size)
                repeated = chosen * (copies + 3)
                yield repeated[:begun], repeated[begun : begun + 2 * size]


@torch.inference_mode()
def continued(checkpoint: Checkpoint, begun: Sequence[list[int]], n_tokens: int) -> list[list[int]]:
    """Continue prompts of one length greedily, whatever the tokens are."""
    state = DecodingState(checkpoint.model, None)
    next_ids = torch.tensor([[START_ID, *ids] for ids in begun])
    written = []
    for _ in range(n_tokens):
        best = state.feed(next_ids).argmax(dim=-1)
        written.append(best)
        next_ids = best[:, None]
    return torch.stack(written, dim=1).tolist()


def tally(checkpoint: Checkpoint) -> dict[str, int]:
    """Return how many prompts there are and how many of them are continued in each way."""
    words = [ids[0] for ids in checkpoint.tokenizer.encode_many(WORDS) if len(ids) == 1]
    counts = {"prompts": 0, "next word right": 0, "two rounds right": 0, "one word three times in a row": 0}
    asked = sorted(prompts(words), key=lambda pair: (len(pair[0]), len(pair[1])))
    for (_, n_tokens), group in groupby(asked, key=lambda pair: (len(pair[0]), len(pair[1]))):
        begun, right = map(list, zip(*group, strict=True))
        for found, wanted in zip(continued(checkpoint, begun, n_tokens), right, strict=True):
            counts["prompts"] += 1
            counts["next word right"] += found[0] == wanted[0]
            counts["two rounds right"] += found == wanted
            counts["one word three times in a row"] += any(
                one == two == three for one, two, three in zip(found, found[1:], found[2:], strict=False)
            )
    return counts


def main() -> None:
    """Print a line per count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkpoint", required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    checkpoint = load(options.checkpoint)
    if checkpoint.config.kind != "decoder-only":
        parser.error(
            f"{options.checkpoint} is a {checkpoint.config.kind} model; only a decoder-only one continues a list"
        )
    for name, count in tally(checkpoint).items():
        print(f"{name}: {count}")


if __name__ == "__main__":
    main()
