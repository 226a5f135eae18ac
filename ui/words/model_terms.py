"""Differences between models in sentences and formulas."""

from torch import nn

from charts.toolkit.numbers import latex_notation
from charts.toolkit.style import three_digits
from transformer.attention import MultiHeadAttention
from transformer.embedding import Embedding
from transformer.guests.read_out import ReadOut
from transformer.runs.next_sentence import NextSentenceAnswer
from ui.words.texts import Marked, common_md


def next_sentence_line(found: NextSentenceAnswer) -> Marked:
    """Return the class of a pair of sentences and its probability, as Markdown."""
    return common_md(f"next_sentence.{found.name}", probability=found.probability)


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


def logits_formula(found: ReadOut, h: str, matrix: str) -> str:
    """Return the logits of a row ``h`` as LaTeX: ``h`` times ``matrix``, with other models' further steps."""
    if found.kind == "token head":
        return rf"\text{{norm}}\big(f({h}\, W_1 + b_1)\big)\, {matrix} + c"
    scale, cap = found.scale, found.cap
    logits = (rf"{latex_notation(three_digits(scale))}\, " if scale != 1 else "") + rf"{h}\, {matrix}"
    logits += " + b" if found.projection.bias is not None else ""
    return (
        logits
        if cap is None
        else rf"{latex_notation(three_digits(cap))} \tanh\big(({logits}) / {latex_notation(three_digits(cap))}\big)"
    )
