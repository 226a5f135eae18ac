"""The data of the Embeddings page for one token: its row of E, the nearest rows, analogies.

Everything that the page draws is computed here, without Streamlit. A notebook builds the same object:

>>> import transformer
>>> from views.embeddings.embeddings_view_model import embeddings_view_model
>>> checkpoint = transformer.load("checkpoints/gpt-en")
>>> trace = transformer.trace(checkpoint, "The dog sleeps.", strategy=transformer.Greedy(1))
>>> view_model = embeddings_view_model(trace, stack="decoder", token=2)
>>> view_model.table.shape[1] == len(view_model.row), view_model.lookup_difference
(True, 0.0)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from transformer import Trace
from transformer.embedding import Embedding
from transformer.layers.embedding_space import Neighbour, Projection, analogy, nearest_rows, principal_components
from transformer.runs.next_sentence import is_pair, sentence_letters
from transformer.variants.family_embedding import FamilyEmbedding
from views.view_models import TokenViewModel

N_NEIGHBOURS = 12
_AROUND = 2  # rows before and after each row that is looked up
# (a, b, c, expected): a − b + c should be near the expected word. Only examples of single-token words are offered.
ANALOGIES = (
    ("his", "he", "she", "her"),
    ("went", "go", "come", "came"),
    ("girls", "girl", "boy", "boys"),
    ("better", "good", "bad", "worse"),
    ("was", "is", "are", "were"),
    ("woman", "man", "boy", "girl"),
    ("Paris", "France", "Japan", "Tokyo"),
    ("elle", "il", "un", "une"),
)


@dataclass(frozen=True)
class EmbeddingsViewModel(TokenViewModel):
    """The matrix E of one stack, for one token in focus."""

    @property
    def embedding(self) -> Embedding:
        """The module that looks rows up."""
        return getattr(self.checkpoint.model, self.stack).embedding

    @cached_property
    def table(self) -> np.ndarray:
        """E, [vocabulary, model]: a view of the model's memory, not a copy."""
        return self.embedding.table.weight.detach().numpy()

    @property
    def scale(self) -> float:
        """The factor of a row, √d_model in the paper."""
        return self.embedding.scale

    @property
    def is_scaled(self) -> bool:
        """Whether rows are multiplied at all."""
        return self.scale != 1

    @property
    def row(self) -> np.ndarray:
        """The row of E that the token in focus looks up: [model]."""
        return self.table[self.focused.id]

    @cached_property
    def one_hot_product(self) -> np.ndarray:
        """The same row by multiplication: a one-hot vector of the token's id, times E."""
        one_hot = np.zeros(len(self.table), dtype=np.float32)
        one_hot[self.focused.id] = 1.0
        return one_hot @ self.table

    @property
    def lookup_difference(self) -> float:
        """The largest difference between lookup and multiplication."""
        return float(np.abs(self.one_hot_product - self.row).max())

    @property
    def probe(self) -> str:
        """The name of the activation that records the embedding."""
        return f"{self.stack}.embedding.token"

    @property
    def recorded(self) -> np.ndarray:
        """The recorded embedding of the token in focus: [model]."""
        return self.trace.values(self.probe)[self.token]

    @property
    def positions(self) -> str:
        """The next step of the embedding: "sinusoidal" or "learned" rows are added, or "none"."""
        if f"{self.stack}.embedding.position" not in self.trace:
            return "none"
        return "sinusoidal" if self.checkpoint.config.positions == "sinusoidal" else "learned"

    @property
    def later_parts(self) -> tuple[str, ...]:
        """Further steps after the lookup: "segment", or "segments" for two sentences, "projection", "norm"."""
        found = []
        if f"{self.stack}.embedding.segment" in self.trace:
            found.append("segments" if is_pair(self.trace) else "segment")
        if isinstance(self.embedding, FamilyEmbedding):
            found += [part for part in ("projection", "norm") if getattr(self.embedding, part) is not None]
        return tuple(found)

    @property
    def segment(self) -> tuple[str, float]:
        """The sentence of the token, "A" or "B", and the length of the vector added for it; "" for none."""
        if f"{self.stack}.embedding.segment" not in self.trace:
            return "", 0.0
        letter = sentence_letters(self.trace)[self.token]
        return letter, float(np.linalg.norm(self.trace.values(f"{self.stack}.embedding.segment")[self.token]))

    @property
    def fetched(self) -> list[int]:
        """The ids of the sentence, each once, in the order of E."""
        return sorted(set(self.tokens.ids))

    @property
    def window(self) -> list[int]:
        """The ids of the sentence with the neighbouring rows of E."""
        last = len(self.table) - 1
        return sorted({row for id in self.fetched for row in range(max(0, id - _AROUND), min(last, id + _AROUND) + 1)})

    @cached_property
    def neighbours(self) -> tuple[Neighbour, ...]:
        """The rows with the largest cosine to the token's own row."""
        return nearest_rows(self.table, self.row, count=N_NEIGHBOURS, excluded={self.focused.id})

    def projection(self) -> Projection:
        """Return all rows in the plane of their first two principal components; this may take seconds."""
        return principal_components(self.table)

    def token_ids(self, word: str) -> list[int]:
        """Return the ids of a word; only a word of one token has its own row."""
        return self.checkpoint.tokenizer.encode(word)

    @cached_property
    def analogies(self) -> dict[str, tuple[str, str, str, str]]:
        """The examples whose words are single tokens here, by name."""
        single = (words for words in ANALOGIES if all(len(self.token_ids(word)) == 1 for word in words))
        return {f"{words[0]} − {words[1]} + {words[2]}": words for words in single}

    def analogy(self, words: Sequence[str]) -> tuple[Neighbour, ...]:
        """Return all rows by similarity to a − b + c; ``words``: three words of one token each."""
        return analogy(self.table, *(self.token_ids(word)[0] for word in words), count=len(self.table))


def rank_of(id: int, found: Sequence[Neighbour]) -> int:
    """Return the rank of an id in a list of neighbours, 1 for the nearest."""
    return 1 + next(rank for rank, neighbour in enumerate(found) if neighbour.id == id)


def embeddings_view_model(trace: Trace, *, stack: str, token: int = 0) -> EmbeddingsViewModel:
    """Build the view model of one token.

    Args:
        trace: The recorded run of a model that reads text.
        stack: "encoder" or "decoder".
        token: What is in focus; a larger number than there are tokens means the last one.
    """
    return EmbeddingsViewModel(trace, stack, min(token, len(trace.tokens(stack)) - 1))
