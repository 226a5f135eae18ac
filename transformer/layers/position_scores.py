"""What positions do to attention scores as two tokens stand farther apart: by each scheme's formula, and measured."""

from collections.abc import Sequence

import numpy as np
import torch

from transformer.config import ModelConfig
from transformer.files.checkpoints import Checkpoint
from transformer.layers.position_edits import without_positions
from transformer.layers.positional import rotary_angles
from transformer.probes import record

N_TEXTS = 16


def sinusoidal_agreement(d_model: int, n_distances: int) -> np.ndarray:
    """PE_m · PE_n over its value at distance 0: [distance], for m − n = 0, 1, 2 …

    = (2 / d_model) Σ_i cos((m − n) · 10000^(−2i/d_model)), because sin a sin b + cos a cos b = cos(a − b) (Vaswani et
    al. 2017, §3.5): it depends on the distance alone.
    """
    frequency = 10_000.0 ** (-np.arange(0, d_model, 2, dtype=np.float64) / d_model)
    return np.cos(np.arange(n_distances)[:, None] * frequency).mean(axis=1)


def rotary_agreement(config: ModelConfig, n_distances: int) -> np.ndarray:
    """⟨R_m q, R_n k⟩ over ⟨q, k⟩ for q = k with channels of one size: [distance] (Su et al. 2021, §3.4.3).

    The mean of cos((m − n) θ_i) over the pairs of channels. Other queries and keys weigh the pairs otherwise.
    """
    return np.cos(rotary_angles(config, n_distances)).mean(axis=1)


def alibi_bias(n_heads: int, n_distances: int) -> np.ndarray:
    """What ALiBi adds to a score at each distance to the left: [head, distance] (Press et al. 2022, §3).

    −m_h · distance with m_h = 2^(−8 (h + 1) / n_heads), head 0 first: nothing is learned. (The paper gives this for
    1, 2, 4, 8 … heads.)
    """
    slopes = 2.0 ** (-8.0 * np.arange(1, n_heads + 1) / n_heads)
    return -slopes[:, None] * np.arange(n_distances)


def similarity_by_distance(similarity: np.ndarray) -> np.ndarray:
    """The mean of [position, position] over all pairs at each distance: [distance]."""
    return np.array([np.diagonal(similarity, offset).mean() for offset in range(len(similarity))])


def measured_position_scores(
    checkpoint: Checkpoint, ids: Sequence[int], *, stack: str, n_positions: int
) -> tuple[np.ndarray, np.ndarray]:
    """What a model's positions add to the scores of its first layer: [head, distance], and the distances key − query.

    ``N_TEXTS`` texts of ``n_positions`` tokens are drawn from ``ids`` (always the same draw), so that at each distance
    many different pairs of tokens meet. The scores of layer 0 are taken with positions and without
    (``without_positions``), and their difference is averaged over all pairs at each distance, up to half of the
    positions. In layer 0 queries and keys come from the same tokens in both runs, so nothing but the positions
    differs. A decoder may only look back: distances ≤ 0. Raises ``ValueError`` for a stack or a length the model does
    not have.
    """
    config = checkpoint.config
    if not (config.has_encoder if stack == "encoder" else config.has_decoder):
        raise ValueError(f"this model has no {stack}")
    if not 2 <= n_positions <= config.max_length or not ids:
        raise ValueError(f"{n_positions} positions of {len(ids)} tokens; this model reads 2 to {config.max_length}")
    device = checkpoint.model.device
    drawn = np.random.default_rng(0).choice(np.array(ids), size=(N_TEXTS, n_positions))
    filled = torch.tensor(drawn, device=device)
    inputs = [filled]
    if config.kind == "encoder-decoder":  # the other stack reads one token: it does not reach layer 0 of this one
        other = torch.full((N_TEXTS, 1), int(ids[0]), device=device)
        inputs = [filled, other] if stack == "encoder" else [other, filled]
    name, scores = f"{stack}.layers.0.self_attention.scores", []
    for edits in ((), without_positions(checkpoint.model, stack)):
        with torch.inference_mode(), record(edits) as recording:
            checkpoint.model(*inputs)
        scores.append(recording.tensors[name].double().mean(dim=0))
    added = (scores[0] - scores[1]).numpy(force=True)  # [head, query, key]
    farthest = n_positions // 2
    distances = np.arange(-farthest, 1 if stack == "decoder" else farthest + 1)
    means = [np.diagonal(added, int(distance), axis1=1, axis2=2).mean(axis=-1) for distance in distances]
    return np.stack(means, axis=1), distances
