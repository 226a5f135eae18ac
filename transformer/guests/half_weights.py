"""Matrices of a large guest that stay in the half precision of their file.

``transformers`` builds a network in float32, so that norms and tables that it computes are exact. Meanwhile, the
matrices of linear layers and embeddings are placeholders of a few numbers, which it passes on without a copy. Then each
gets its stored numbers, and its layer widens them while it computes (``transformer.variants.half_precision``).
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from transformer.disk.tensor_files import HALVES, StoredTensor
from transformer.families.weights import modules_of_parameters
from transformer.variants.half_precision import can_be_half, keep_half, saves_memory


def kept_half(network: nn.Module, stored: Mapping[str, StoredTensor]) -> frozenset[str]:
    """Return the names of the stored matrices that stay in half precision: none in a small model."""
    matrices = {f"{name}.weight" for name, module in network.named_modules() if can_be_half(module)}
    front = f"{getattr(network, 'base_model_prefix', '')}."
    found = {
        name
        for name, tensor in stored.items()
        if tensor.type in HALVES and not matrices.isdisjoint((name, front + name, name.removeprefix(front)))
    }
    return frozenset(found if saves_memory(sum(torch.Size(stored[name].shape).numel() for name in found)) else ())


def placeholder(shape: tuple[int, ...]) -> Tensor:
    """Return zeros, [row, column], in 2 · rows + columns numbers; the strides reveal a transposition."""
    rows, columns = shape
    return torch.zeros(2 * rows + columns).as_strided((rows, columns), (2, 1))


def fill_placeholders(network: nn.Module, placeholders: Mapping[str, Tensor], halves: Mapping[str, Tensor]) -> bool:
    """Give each layer its stored matrix, and return whether the network has every placeholder unchanged."""
    names = {matrix.data_ptr(): name for name, matrix in placeholders.items()}
    found = {name: (parameter, users) for parameter, users in modules_of_parameters(network).items()
             if (name := names.get(parameter.data_ptr())) is not None}  # fmt: skip
    if found.keys() != placeholders.keys() or any(each.stride() != (2, 1) for each, _ in found.values()):
        return False
    for name, (_, users) in found.items():
        half = all(part == "weight" and can_be_half(module) for module, part in users)
        matrix = nn.Parameter(halves[name] if half else halves[name].float(), requires_grad=False)
        for module, part in users:
            setattr(module, part, matrix)
            if half:
                keep_half(module)
    return True
