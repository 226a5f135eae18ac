"""Edge attribution patching: estimates of path patching for all edges into a head at once.

Path patching runs the model twice per edge. To first order, one backward pass gives the effect of every edge from a
sender s to a receiver r (Syed et al. 2023, "Attribution Patching Outperforms Automated Circuit Discovery", §2, after
Nanda 2023, "Attribution Patching"):

    effect(s → r) ≈ (z_s′ − z_s) · ∂(Σ slope · x_r)/∂z_s,      slope = ∂F/∂x_r

with the context z_s of the sender, [query, channel], in the corrupted run and z_s′ in the clean one; x_r are the
query, keys or values of the receiver, [position, channel], and F = logit(answer) − logit(other). The backward pass goes
from F to x_r through the whole model, and from x_r back along the residual stream alone, with all other heads and the
feed-forward layers held fixed, as in path patching. Norms in between are part of it.

Both factors are slopes at the corrupted run, so the estimate misses what a softmax or a norm does further away:
measure the largest ones.
"""

from collections.abc import Sequence

import numpy as np
import torch

from transformer.interventions.activation_patching import Contrast, Turn, logits_at
from transformer.interventions.attribution_patching import embeddings_as_leaves, slopes_of
from transformer.interventions.path_patching import INPUTS, attention_name, inputs_of, is_frozen, senders_of
from transformer.probes import Edit, record
from transformer.runs.autograd import gradients
from transformer.runs.head_places import Head


def estimated_edges(
    contrast: Contrast,
    turn: Turn,
    receiver: Head,
    senders: Sequence[Head] | None = None,
    *,
    inputs: Sequence[str] = INPUTS,
) -> np.ndarray:
    """Estimate ``path_patching``: the share that each edge recovers, [sender].

    Args:
        contrast: The two sentences.
        turn: The prediction that is compared.
        receiver: The receiving head.
        senders: By default those of ``senders_of``.
        inputs: Which of "query", "key" and "value" of the receiver the change passes through.

    Raises:
        ValueError: If the receiver does not exist or an input is unknown.
        NotExposedError: If a guest does not expose one of the inputs.
    """
    own = senders_of(contrast, receiver)
    senders = own if senders is None else tuple(senders)
    model = contrast.checkpoint.model
    ears = inputs_of(model, receiver, inputs)
    frozen = [name for name in model.probes if is_frozen(name)]
    contexts = [f"{attention_name(sender)}.context" for sender in senders]
    if not senders:
        return np.zeros(0)
    with torch.no_grad(), record(names=set(contexts)) as clean:
        logits_at(contrast, turn, contrast.clean, 1)
    with gradients(), record(embeddings_as_leaves(model), {*ears, *frozen}) as corrupt:
        logits = logits_at(contrast, turn, contrast.corrupt, 1)[0]
        heard = {name: corrupt.tensors[name] for name in ears}
        slopes = slopes_of(logits[turn.answer] - logits[turn.other], heard)
    fixed = {name: corrupt.tensors[name].detach() for name in frozen}
    with gradients():
        leaves = {name: fixed[name].clone().requires_grad_() for name in dict.fromkeys(contexts)}
        held = [Edit(name, lambda _own, kept=kept: kept, "frozen") for name, kept in {**fixed, **leaves}.items()]
        with record([*embeddings_as_leaves(model), *held], ears) as received:
            logits_at(contrast, turn, contrast.corrupt, 1)
        pull = torch.stack([(received.tensors[name] * slopes[name])[:, receiver.head].sum() for name in ears]).sum()
        back = slopes_of(pull, leaves)
    with torch.no_grad():
        changes = [
            float(((clean.tensors[name] - fixed[name]) * back[name])[0, sender.head].double().sum())
            for name, sender in zip(contexts, senders, strict=True)
        ]
    return turn.share(np.array(changes) + turn.corrupt)
