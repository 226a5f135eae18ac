"""The score of a query and a key as LaTeX."""

from charts.toolkit.numbers import latex_notation, number
from transformer.attention_maps.attention_arithmetic import ScoreRule


def score_formula(rule: ScoreRule, product: str, *, root: str = "", added: str = "") -> str:
    """Return the formula of a score.

    Args:
        rule: How this model turns q · k into a score.
        product: q · k, by name or in numbers.
        root: Name of d_k; its number by default.
        added: What the model adds, with its sign in front.
    """
    radicand = rule.radicand
    if not rule.is_scaled:
        score = product
    elif radicand is None:
        score = rf"{tex_number(rule.scale)} \cdot {product}"
    else:
        score = rf"\frac{{{product}}}{{\sqrt{{{root if root and radicand == rule.d_head else radicand}}}}}"
    score += added
    if rule.cap is None:
        return score
    cap = tex_number(rule.cap)
    return rf"{cap} \tanh\left( \frac{{1}}{{{cap}}} \left( {score} \right) \right)"


def tex_number(value: float, *, digits: int = 6) -> str:
    """Format a number for LaTeX; with only three digits, sums and quotients would not add up on the page."""
    return latex_notation(number(f"{value:.{digits}g}"))


def signed(value: float) -> str:
    """Format a number with its sign."""
    return f"- {tex_number(-value)}" if value < 0 else f"+ {tex_number(value)}"
