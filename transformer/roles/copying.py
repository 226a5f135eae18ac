"""By the weights alone: does what a head writes raise the very token that it looks at?

Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits" ("Summarizing OV/QK matrices"): head h, which
looks at token t, adds row t of the matrix W_E W_V W_O W_Uᵀ [token, token] to the logits. Where it copies, that matrix
has positive eigenvalues λ:

    copying = Σ λ / Σ |λ|      −1 … 1

1: every token that it looks at becomes more probable; −1: less; about 0: random weights, which is the chance level. The
eigenvalues other than 0 are those of the small matrix W_O (W_Uᵀ W_E) W_V [channel, channel]. The means over the tokens
are taken off W_E and W_U: what all tokens share tells none from another, and softmax does not see it. Norms between the
layers are left out, as there.

What it writes is no job: beside "induction" it says whether a head that finds the right place also says what stood
there (Olsson et al. 2022 ask for both).
"""

import torch
from torch import Tensor, nn

from transformer.analysis.feed_forward_units import why_no_words
from transformer.files.checkpoints import Checkpoint
from transformer.roles.tally import Measure

LEAST_COPYING = 0.5  # half of all that its eigenvalues move is raised, net


def copying_measures(checkpoint: Checkpoint) -> dict[tuple[str, str, int, int], Measure]:
    """By (stack, kind, layer, head), of the stacks whose tokens and words share the width of the stream."""
    model, found = checkpoint.model, {}
    for stack in ("encoder", "decoder"):
        module = getattr(model, stack, None)
        projection = getattr(module, "vocabulary_projection", None)
        if projection is None or why_no_words(checkpoint, stack) is not None:
            continue
        for kind in ("self", "cross"):
            read = getattr(model, "encoder", None) if kind == "cross" else module
            for layer, one in enumerate(module.layers):
                attention = getattr(one, f"{kind}_attention", None)
                if attention is None or not _same_tokens(read.embedding.table, projection):
                    continue
                both = meeting(read.embedding.table.weight, projection.weight)
                for head, score in enumerate(copying_scores(attention, both)):
                    found[stack, kind, layer, head] = Measure(score, 0.0, LEAST_COPYING, attention.d_head)
    return found


@torch.inference_mode()
def meeting(embedding: Tensor, unembedding: Tensor) -> Tensor:
    """W_Uᵀ W_E [model, model], of matrices [token, model] whose means over the tokens are taken off."""
    return (unembedding - unembedding.mean(dim=0)).T @ (embedding - embedding.mean(dim=0))


@torch.inference_mode()
def copying_scores(attention: nn.Module, both: Tensor) -> list[float]:
    """Σ λ / Σ |λ| of every head of one layer; ``both``: see ``meeting``. Heads that share their values (grouped-query
    attention) have the value matrix of their group."""
    n_heads, width = attention.n_heads, attention.d_head
    values = attention.value_projection.weight.unflatten(0, (-1, width))  # [value head, channel, model]
    outputs = attention.output_projection.weight.T.unflatten(0, (n_heads, width))  # [head, channel, model]
    values = values.repeat_interleave(n_heads // len(values), dim=0)
    eigenvalues = torch.linalg.eigvals((outputs @ both @ values.transpose(1, 2)).double())
    return (eigenvalues.real.sum(dim=1) / eigenvalues.abs().sum(dim=1).clamp_min(1e-30)).tolist()


def _same_tokens(table: nn.Embedding, projection: nn.Linear) -> bool:
    return getattr(projection, "weight", None) is not None and table.weight.shape == projection.weight.shape
