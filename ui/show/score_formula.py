"""The score of a query and a key as LaTeX: what this model makes of their product."""

from charts.toolkit.numbers import in_tex, number
from transformer.attention_maps.attention_arithmetic import ScoreRule


def score_formula(rule: ScoreRule, product: str, *, root: str = "", added: str = "") -> str:
    """``product``: q · k by name or in numbers. ``root``: what d_k is called (in numbers by default). ``added``: what
    the model adds, with its sign in front."""
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
    """Significant digits as LaTeX; six, because with three, sums and quotients would not add up on the page."""
    return in_tex(number(f"{value:.{digits}g}"))


def signed(value: float) -> str:
    return f"- {tex_number(-value)}" if value < 0 else f"+ {tex_number(value)}"
