"""Differences between models in sentences and formulas."""

from torch import nn

from charts.toolkit.numbers import latex_notation
from charts.toolkit.style import three_digits
from transformer.attention import MultiHeadAttention
from transformer.embedding import Embedding
from transformer.guests.output_heads import TokenHead
from ui.words.texts import PageText


def embedding_scale(embedding: Embedding, width: int) -> str:
    """Return the factor of a row of E: " × √d_model" in the paper, another one, or "".

    ``width`` is d_model.
    """
    if abs(embedding.scale - width**0.5) < 1e-3:
        return " × √d_model"
    return "" if embedding.scale == 1 else f" × {three_digits(embedding.scale)}"


def output_bias(model: nn.Module) -> str:
    """Return the bias term after the heads of a layer: " + b_O", or "" if W_O has no bias."""
    attentions = [module for module in model.modules() if isinstance(module, MultiHeadAttention)]
    return " + b_O" if any(attention.output_projection.bias is not None for attention in attentions) else ""


def rotary_words(text: PageText, key: str, factor: float, **values: object) -> str:
    """Return the Attention page's sentence ``key`` about rotated queries.

    If the rotation also multiplies, another sentence is added. ``text`` is that of the page, ``factor`` the attention
    factor of scaled frequencies, 1 if there is none.
    """
    formatted = text[key].format(**values)
    return formatted if factor == 1 else f"{formatted} {text['arithmetic_factor'].format(factor=three_digits(factor))}"


def logits_formula(projection: nn.Module, h: str, matrix: str) -> str:
    """Return the logits of a row ``h`` as LaTeX: ``h`` times ``matrix``, with other models' further steps."""
    if isinstance(projection, TokenHead):
        return rf"\text{{norm}}\big(f({h}\, W_1 + b_1)\big)\, {matrix} + c"
    scale, cap = getattr(projection, "scale", 1.0), getattr(projection, "cap", None)
    logits = (rf"{latex_notation(three_digits(scale))}\, " if scale != 1 else "") + rf"{h}\, {matrix}"
    logits += " + b" if projection.bias is not None else ""
    return (
        logits
        if cap is None
        else rf"{latex_notation(three_digits(cap))} \tanh\big(({logits}) / {latex_notation(three_digits(cap))}\big)"
    )
