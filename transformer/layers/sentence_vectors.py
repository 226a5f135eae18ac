"""Two sentences by the vectors of an encoder without a head: their cosine, and which tokens it comes from.

The vector of a sentence is u[c] = Σ_i w_i[c] h_i[c], with h_i what the last layer says at token i and w the way of
pooling: 1/n each (mean), 1 for the first token (first), or 1 for the token with the largest number (max). So the cosine
is a sum over pairs of tokens, exactly:

    cos(u, v) = Σ_i Σ_j (w_i ⊙ h_i) · (w′_j ⊙ h′_j) / (‖u‖ ‖v‖)

h_i has looked at the other tokens by then: a part belongs to the place i, not to the word alone.
"""

import numpy as np

from transformer.runs.traces import Trace


def pooled_tokens(trace: Trace) -> np.ndarray:
    """w ⊙ h, [token, model] in float64; its sum over tokens is the vector of the sentence."""
    last = f"encoder.layers.{trace.n_layers('encoder') - 1}.residual.out"
    name = "encoder.final_norm.output" if "encoder.final_norm.output" in trace else last
    hidden = trace.values(name).astype(np.float64)
    real = np.array([not token.is_padding for token in trace.tokens("encoder")])
    weight = np.zeros_like(hidden)
    kind = trace.checkpoint.config.pooling
    if kind == "mean":
        weight[real] = 1 / real.sum()
    elif kind == "first":
        weight[0] = 1
    else:
        best = np.where(real[:, None], hidden, -np.inf).argmax(axis=0)
        weight[best, np.arange(hidden.shape[1])] = 1
    return weight * hidden


def parts_of_cosine(first: Trace, second: Trace) -> np.ndarray:
    """What each pair of tokens adds to the cosine of the two sentences: [token of first, token of second]."""
    one, other = pooled_tokens(first), pooled_tokens(second)
    return one @ other.T / (np.linalg.norm(one.sum(axis=0)) * np.linalg.norm(other.sum(axis=0)))
