"""Model that classifies images (Vision Transformer, Dosovitskiy et al. 2021): an encoder over patches."""

import torch
from torch import Tensor, nn

from transformer.config import PictureConfig
from transformer.encoder import Encoder
from transformer.models import EncoderOnly, FirstTokenClassifier, Model
from transformer.pictures.patch_numbers import N_SPECIAL, levels_of


class PatchEmbedding(nn.Module):
    """Embedding of patches, in place of a table: x = E · pixels + b, with the pixels scaled to 0 … 1.

    A special token has a vector of its own. In Dosovitskiy et al. 2021, eq. 1 (there without b), the class token's
    vector is x_class; it is ``<s>`` here. ``<mask>`` stands for a masked patch. ``</s>`` does not occur in an image.
    """

    def __init__(self, config: PictureConfig) -> None:
        super().__init__()
        self.config = config
        self.projection = nn.Linear(config.patch_size**2, config.d_model)
        self.special = nn.Embedding(N_SPECIAL, config.d_model)
        nn.init.normal_(self.special.weight, std=0.02)

    def pixels(self, ids: Tensor) -> Tensor:
        """Return the pixels of patches, [batch, position, pixel], from 0 (empty) to 1 (full ink)."""
        return levels_of(ids, self.config) / (self.config.n_levels - 1)

    def forward(self, ids: Tensor) -> Tensor:
        """Embed ids: [batch, position] → [batch, position, model]."""
        special = self.special(ids.clamp(max=N_SPECIAL - 1))
        return torch.where((ids < N_SPECIAL)[..., None], special, self.projection(self.pixels(ids)))

    @property
    def weight(self) -> Tensor:
        """Table of the embeddings of all possible patches, [vocabulary, model], computed on demand."""
        return self(torch.arange(self.config.vocabulary_size, device=self.special.weight.device))


class VisionTransformer(EncoderOnly):
    """Classifier of images (Dosovitskiy et al. 2021): an encoder over a class token and patches.

    The patches' pixels are mapped to vectors, which are not multiplied by √d_model. The class is read from the class
    token alone, by "a MLP with one hidden layer" (§3.1), with tanh as in the authors' code.
    """

    def __init__(self, config: PictureConfig) -> None:
        Model.__init__(self, config)
        self.encoder = Encoder(config, PatchEmbedding(config))
        self.encoder.embedding.scale = 1.0
        self.classifier = FirstTokenClassifier(config, torch.tanh)
        self.finish()
