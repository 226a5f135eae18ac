"""Models built from their configuration, with random weights."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from transformer.config import ModelConfig
from transformer.models import MODELS, Model
from transformer.pictures.vision_transformer import VisionTransformer

_RANDOM = (Tensor.uniform_, Tensor.normal_, nn.init.uniform_, nn.init.normal_, nn.init.kaiming_uniform_)


def build_model(config: ModelConfig) -> Model:
    """Return a freshly initialised model of the kind that ``config`` names."""
    return VisionTransformer(config) if config.reads_images else MODELS[config.kind](config)


def random_model(config: ModelConfig, *, seed: int = 0) -> Model:
    """Return a model with random weights that ``seed`` alone determines, in ``eval()`` mode.

    They are those of ``build_model`` after ``torch.manual_seed(seed)``, with which every training run starts
    (``transformer.training.start``), but torch's global generator, which other threads use as well, stays untouched.
    """
    with _DrawsFrom(torch.Generator().manual_seed(seed)):
        return build_model(config).eval()


class _DrawsFrom(TorchFunctionMode):
    """Mode in which initialisation draws its random numbers from a generator of its own."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self._generator = generator

    def __torch_function__(
        self, func: Callable, types: Sequence[type], args: tuple = (), kwargs: Mapping[str, object] | None = None
    ) -> object:
        kwargs = dict(kwargs or {})
        if func in _RANDOM:
            kwargs["generator"] = self._generator
        return func(*args, **kwargs)
