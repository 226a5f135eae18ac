"""How one attention of a model turns q · k into a score: by its own scale, with what it adds, bent by its cap."""

from dataclasses import dataclass

import numpy as np

from transformer.files.checkpoints import Checkpoint
from transformer.runs.traces import Trace

RELATIVE = "position_bias.values"
DISENTANGLED = ("content_to_position", "position_to_content")


@dataclass(frozen=True)
class ScoreRule:
    """s = cap · tanh((q · k · scale + what is added) / cap), of which a model has what it has.

    The paper's models multiply by ``scale`` = 1/√d_k, add nothing and have no ``cap`` (Vaswani et al. 2017, §3.2.1).
    ``added``: the activations [head, query, key] that are added. ``window``: how many positions back a query may look,
    itself included. ``normalized``: queries and keys are divided by their root mean square first (Qwen3, Gemma 3).
    ``heads_a_key``: how many heads of queries share one head of keys and values (1 in the paper).
    """

    d_head: int
    scale: float
    cap: float | None = None
    added: tuple[str, ...] = ()
    window: int | None = None
    normalized: bool = False
    heads_a_key: int = 1

    @property
    def is_scaled(self) -> bool:
        """Whether products are multiplied at all (T5's are not: Raffel et al. 2020)."""
        return self.scale != 1.0

    @property
    def is_of_the_paper(self) -> bool:
        """q · k / √d_k, whether or not something is added."""
        return self.radicand == self.d_head and self.cap is None

    @property
    def radicand(self) -> int | None:
        """n, where the scale is 1/√n for a whole number n: d_k in the paper; ``None`` where there is none."""
        squared = self.scale**-2
        return round(squared) if abs(squared - round(squared)) < 1e-4 * squared else None

    def score(self, dot_product: np.ndarray | float, added: np.ndarray | float = 0.0) -> np.ndarray:
        """The score of q · k, in double precision."""
        score = np.float64(dot_product) * self.scale + added
        return score if self.cap is None else self.cap * np.tanh(score / self.cap)


def score_rule(checkpoint: Checkpoint, stack: str, layer: int, kind: str) -> ScoreRule:
    """The rule of one layer's self- or cross-attention, read from the modules that compute it."""
    name = f"{stack}.layers.{layer}.{kind}_attention"
    module = checkpoint.model.get_submodule(name)
    added = tuple(f"{name}.{term}" for term in DISENTANGLED if getattr(module, term, None) is not None)
    if kind == "self" and getattr(checkpoint.model, stack).position_bias is not None:
        added = (f"{stack}.{RELATIVE}",)
    return ScoreRule(
        d_head=module.d_head,
        scale=module.scale,
        cap=getattr(module, "score_cap", None),
        added=added,
        window=getattr(module, "window", None),
        normalized=getattr(module, "query_norm", None) is not None,
        heads_a_key=module.n_heads // getattr(module, "n_key_heads", module.n_heads),
    )


def added_to_scores(trace: Trace, rule: ScoreRule) -> np.ndarray | None:
    """The sum of what the model adds to its scaled products: [head, query, key]; ``None`` where it adds nothing."""
    return sum(trace.values(name) for name in rule.added) if rule.added else None
