"""What a model does that others do otherwise, as it is written in sentences and formulas."""

from charts.toolkit.style import three_digits
from transformer.embedding import Embedding


def embedding_scale(embedding: Embedding, width: int) -> str:
    """What stands behind a row of E: " × √d_model" in the paper, another factor, or nothing. ``width``: d_model."""
    if abs(embedding.scale - width**0.5) < 1e-3:
        return " × √d_model"
    return "" if embedding.scale == 1 else f" × {three_digits(embedding.scale)}"
