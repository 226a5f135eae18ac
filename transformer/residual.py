"""The residual connection around every sub-layer, with LayerNorm before or after it."""

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
    """pre-norm: x + sublayer(norm(x)) (Xiong et al. 2020, §3); post-norm: norm(x + sublayer(x)) (Vaswani et al. 2017,
    §3.1).

    ``stream`` is the residual stream [batch, position, model]; the result is its new value.
    """
    if pre_norm:
        return stream + dropout(sublayer(norm(stream)))
    return norm(stream + dropout(sublayer(stream)))
