"""The residual connection around every sub-layer, with the norm before or after the sub-layer."""

from collections.abc import Callable

from torch import Tensor


def residual_connection(
    stream: Tensor,
    sublayer: Callable[[Tensor], Tensor],
    norm: Callable[[Tensor], Tensor],
    dropout: Callable[[Tensor], Tensor],
    *,
    pre_norm: bool,
) -> Tensor:
    """Add the output of a sub-layer to the residual stream.

    Pre-norm: x + sublayer(norm(x)) (Xiong et al. 2020, §3). Post-norm: norm(x + sublayer(x)) (Vaswani et al. 2017,
    §3.1).

    Args:
        stream: The residual stream x, [batch, position, model].
        sublayer: Attention or feed-forward layer.
        norm: LayerNorm or RMSNorm.
        dropout: Applied to the output of the sub-layer.
        pre_norm: Whether the norm comes before the sub-layer.

    Returns:
        The residual stream after the sub-layer, [batch, position, model].
    """
    if pre_norm:
        return stream + dropout(sublayer(norm(stream)))
    return norm(stream + dropout(sublayer(stream)))
