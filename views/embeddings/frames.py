"""The table from which a chart of nearest neighbours is drawn."""

from collections.abc import Sequence

import pandas as pd

from transformer.layers.embedding_space import Neighbour

N_NEIGHBOURS = 12


def neighbour_frame(names: Sequence[str], found: Sequence[Neighbour]) -> pd.DataFrame:
    """``names``: how each entry of the vocabulary is shown, by id."""
    return pd.DataFrame(
        {
            "piece": [names[neighbour.id] for neighbour in found],
            "similarity": [neighbour.similarity for neighbour in found],
            "id": [neighbour.id for neighbour in found],
        }
    )
