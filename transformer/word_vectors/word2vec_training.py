"""Training of word2vec: one loop for skip-gram and CBOW."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer.word_vectors.vocabulary import Vocabulary
from transformer.word_vectors.word2vec_objectives import OBJECTIVES, windows


@dataclass(frozen=True)
class WordRecipe:
    """Settings of a run: those of Mikolov et al. (2013b), as far as a corpus of a million words allows."""

    width: int = 100
    window: int = 5
    negatives: int = 5
    min_count: int = 5
    subsampling: float = 1e-3
    epochs: int = 20
    batch_words: int = 2_048
    learning_rate: float = 4e-3
    seed: int = 1


def train_vectors(
    vocabulary: Vocabulary,
    texts: Sequence[str],
    objective: str,
    recipe: WordRecipe,
    report: Callable[[int, float], None] = lambda epoch, loss: None,
) -> np.ndarray:
    """Return the input vectors, [word, width], after ``recipe.epochs`` passes over ``texts``.

    The learning rate of Adam falls linearly to 0. The same recipe gives the same vectors on the same machine.

    Args:
        vocabulary: The words.
        texts: The corpus.
        objective: "skip-gram" or "cbow".
        recipe: Settings.
        report: Called with the mean loss of every epoch.
    """
    torch.manual_seed(recipe.seed)
    model = OBJECTIVES[objective](len(vocabulary.words), recipe.width)
    optimizer = torch.optim.Adam(model.parameters(), lr=recipe.learning_rate, fused=True)
    generator = torch.Generator().manual_seed(recipe.seed)
    noise = torch.tensor(vocabulary.noise())
    keeping = torch.tensor(vocabulary.keep_probabilities(recipe.subsampling))
    sentences = [torch.tensor(sentence) for sentence in vocabulary.to_ids(texts)]
    for epoch in range(recipe.epochs):
        batches = list(_batches(sentences, keeping, recipe, generator))
        losses = []
        for index, (centre, around, present) in enumerate(batches):
            done = (epoch + index / len(batches)) / recipe.epochs
            optimizer.param_groups[0]["lr"] = recipe.learning_rate * (1 - done)
            drawn = torch.multinomial(noise, around.numel() * recipe.negatives, replacement=True, generator=generator)
            loss = model(centre, around, present, drawn.view(*around.shape, recipe.negatives))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        report(epoch + 1, float(torch.stack(losses).mean()))
    return model.input.weight.detach().numpy()


def _batches(
    sentences: Sequence[Tensor], keeping: Tensor, recipe: WordRecipe, generator: torch.Generator
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield shuffled centre words with their neighbours; subsampling and window sizes are drawn anew."""
    parts: list[tuple[Tensor, Tensor, Tensor]] = []
    for sentence in sentences:
        kept = sentence[torch.rand(len(sentence), generator=generator) < keeping[sentence]]
        if len(kept) > 1:
            reach = torch.randint(1, recipe.window + 1, (len(kept),), generator=generator)
            parts.append((kept, *windows(kept, reach, recipe.window)))
    if not parts:
        raise ValueError(f"too little text: of {len(sentences)} sentences no two words were left to learn from")
    centre, around, present = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
    order = torch.randperm(len(centre), generator=generator)
    for indices in order.split(recipe.batch_words):
        yield centre[indices], around[indices], present[indices]
