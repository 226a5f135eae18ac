"""What a family file holds: how a config is read, and where each of our tensors lies in a foreign file."""

from collections.abc import Callable
from dataclasses import dataclass

from transformer.families.family_config import FamilyConfig
from transformer.families.values import Values
from transformer.families.weights import Table


@dataclass(frozen=True)
class Family:
    """``config``: their config → ours. ``table``: our tensors' names → theirs, for one config.

    ``prefixes``: what may stand in front of every name. ``embedding``, ``output``: the stored names of E and of the
    projection to the vocabulary, which decide whether the two are one.
    """

    config: Callable[[Values], FamilyConfig]
    table: Callable[[FamilyConfig], Table]
    prefixes: tuple[str, ...]
    embedding: tuple[str, ...]
    output: tuple[str, ...]
    tied_by_default: bool = True
