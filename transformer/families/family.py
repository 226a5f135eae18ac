"""What one family file defines: how its config is read, and where each of our tensors is in its files."""

from collections.abc import Callable
from dataclasses import dataclass

from transformer.families.family_config import FamilyConfig
from transformer.families.values import Values
from transformer.families.weights import Table


@dataclass(frozen=True)
class Family:
    """How the checkpoints of one family are read.

    Attributes:
        config: Turns the family's ``config.json`` into a ``FamilyConfig``.
        table: Returns, for one config, the stored name of each of our tensors.
        prefixes: Prefixes that stored names may have.
        embedding: Stored names of the embedding E.
        output: Stored names of the projection to the vocabulary. Whether it exists, and equals E, decides whether
            the two are tied.
    """

    config: Callable[[Values], FamilyConfig]
    table: Callable[[FamilyConfig], Table]
    prefixes: tuple[str, ...]
    embedding: tuple[str, ...]
    output: tuple[str, ...]
    tied_by_default: bool = True
