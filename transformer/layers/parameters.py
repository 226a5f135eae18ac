"""What is in the weights of a checkpoint, parameter by parameter."""

from dataclasses import dataclass

import torch

from transformer.models import Model


@dataclass(frozen=True)
class ParameterStatistics:
    """One trained tensor. ``std`` is the biased standard deviation, ``largest`` the largest magnitude."""

    name: str
    shape: tuple[int, ...]
    numbers: int
    mean: float
    std: float
    largest: float


@torch.inference_mode()
def parameter_statistics(model: Model) -> list[ParameterStatistics]:
    """Every parameter once (a tied matrix under its first name), in the order of the modules."""
    return [
        ParameterStatistics(
            name=name,
            shape=tuple(parameter.shape),
            numbers=parameter.numel(),
            mean=float(parameter.mean()),
            std=float(parameter.std(correction=0)),
            largest=float(parameter.abs().max()),
        )
        for name, parameter in model.named_parameters()
    ]
