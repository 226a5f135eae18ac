"""The model that reads pictures (Vision Transformer, Dosovitskiy et al. 2021): an encoder over embedded patches."""

import torch
from torch import Tensor, nn

from transformer.config import PictureConfig
from transformer.encoder import Encoder
from transformer.models import EncoderOnly, Model
from transformer.pictures.patch_numbers import N_SPECIAL, levels_of
from transformer.variants.output_heads import FirstTokenClassifier


class PatchEmbedding(nn.Module):
    """x = E · pixels + b for a patch, the pixels scaled to 0 … 1; a vector of its own for a special token. It stands in
    the place of a table.

    Dosovitskiy et al. 2021, eq. 1 (there without b): the class token's vector is x_class, ``<s>`` here. ``<mask>``
    stands for a patch that is hidden. ``</s>`` never stands in a picture.
    """

    def __init__(self, config: PictureConfig) -> None:
        super().__init__()
        self.config = config
        self.projection = nn.Linear(config.patch_size**2, config.d_model)
        self.special = nn.Embedding(N_SPECIAL, config.d_model)
        nn.init.normal_(self.special.weight, std=0.02)

    def pixels(self, ids: Tensor) -> Tensor:
        """[batch, position] → [batch, position, pixel], 0 (nothing) to 1 (full ink)."""
        return levels_of(ids, self.config) / (self.config.n_levels - 1)

    def forward(self, ids: Tensor) -> Tensor:
        """[batch, position] → [batch, position, model]."""
        special = self.special(ids.clamp(max=N_SPECIAL - 1))
        return torch.where((ids < N_SPECIAL)[..., None], special, self.projection(self.pixels(ids)))

    @property
    def weight(self) -> Tensor:
        """The table that this would be if every possible patch were looked up: [vocabulary, model], made when asked."""
        return self(torch.arange(self.config.vocabulary_size, device=self.special.weight.device))


class VisionTransformer(EncoderOnly):
    """Classifies a picture (Dosovitskiy et al. 2021): an encoder over a class token and the picture's patches.

    The patches' pixels are mapped to vectors, which are not multiplied by √d_model. The class is read from the class
    token alone, by "a MLP with one hidden layer" (§3.1), with tanh as in the authors' code.
    """

    def __init__(self, config: PictureConfig) -> None:
        Model.__init__(self, config)
        self.encoder = Encoder(config, PatchEmbedding(config))
        self.encoder.embedding.scale = 1.0
        self.classifier = FirstTokenClassifier(config, torch.tanh)
        self.finish()
