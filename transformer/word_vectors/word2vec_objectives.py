"""The two objectives of word2vec on a window of words, with negative sampling.

v are the vectors that are kept in the end ("input"), u those of predicted words ("output"). For a vector h that
predicts word o, and random words n_1 … n_k as negatives (Mikolov et al. 2013b, eq. 4):

    loss = −log σ(u_o · h) − Σ_i log σ(−u_{n_i} · h)
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class WordModel(nn.Module):
    """Both tables of vectors; a subclass defines h and what is predicted."""

    def __init__(self, n_words: int, width: int) -> None:
        super().__init__()
        self.input = nn.Embedding(n_words, width)
        self.output = nn.Embedding(n_words, width)
        nn.init.uniform_(self.input.weight, -0.5 / width, 0.5 / width)
        nn.init.zeros_(self.output.weight)

    def negative_sampling(self, h: Tensor, predicted: Tensor, negatives: Tensor) -> Tensor:
        """Return the mean of the loss above; h: [batch, width], predicted: [batch], negatives: [batch, k]."""
        right = (self.output(predicted) * h).sum(-1)  # [batch]
        wrong = (self.output(negatives) @ h[:, :, None]).squeeze(-1)  # [batch, k]
        return -(F.logsigmoid(right) + F.logsigmoid(-wrong).sum(-1)).mean()


class SkipGram(WordModel):
    """Skip-gram: the centre word predicts each word around it; h = v_centre."""

    def forward(self, centre: Tensor, around: Tensor, present: Tensor, negatives: Tensor) -> Tensor:
        """Return the loss, one pair for each ``present`` word around.

        Args:
            centre: [batch].
            around: [batch, window].
            present: [batch, window].
            negatives: [batch, window, k].
        """
        h = self.input(centre)[:, None].expand(-1, around.shape[1], -1)  # [batch, window, width]
        return self.negative_sampling(h[present], around[present], negatives[present])


class ContinuousBagOfWords(WordModel):
    """Continuous bag of words: the words around predict the centre word; h is their mean."""

    def forward(self, centre: Tensor, around: Tensor, present: Tensor, negatives: Tensor) -> Tensor:
        """Return the loss, as in skip-gram; only the negatives of the first position are used."""
        vectors = self.input(around) * present[:, :, None]  # [batch, window, width]
        some = present.any(-1)
        h = vectors.sum(1)[some] / present.sum(-1, keepdim=True)[some]  # [batch, width]
        return self.negative_sampling(h, centre[some], negatives[some, 0])


OBJECTIVES: dict[str, type[WordModel]] = {"skip-gram": SkipGram, "cbow": ContinuousBagOfWords}


def windows(sentence: Tensor, reach: Tensor, window: int) -> tuple[Tensor, Tensor]:
    """Return the words around every word of a sentence, and which of these positions hold one.

    Args:
        sentence: [n].
        reach: Size of each word's window, 1 … window, [n]; it is drawn at random, so that near words count more
            (Mikolov et al. 2013a, §3.2).
        window: Largest size.

    Returns:
        around and present, [n, 2 · window] each; positions without a word hold 0.
    """
    offsets = torch.cat([torch.arange(-window, 0), torch.arange(1, window + 1)])  # [2 · window]
    places = torch.arange(len(sentence))[:, None] + offsets  # [n, 2 · window]
    present = (places >= 0) & (places < len(sentence)) & (offsets.abs() <= reach[:, None])
    return torch.where(present, sentence[places.clamp(0, len(sentence) - 1)], 0), present
