"""What every head does in one sentence, as a table or as JSON: ``python -m transformer inspect``."""

import math
from collections.abc import Sequence
from dataclasses import asdict

from transformer.files.checkpoints import Checkpoint
from transformer.roles.head_roles import HeadRole, head_roles
from transformer.runs.strategies import Greedy
from transformer.runs.tracing import trace


def sentence_roles(checkpoint: Checkpoint, sentence: str) -> tuple[HeadRole, ...]:
    """Of every head, in the order of the forward pass. A decoder-only model reads the sentence and nothing more.

    Raises ``InputError`` for a sentence that the model cannot take.
    """
    strategy = Greedy(1) if checkpoint.config.kind == "decoder-only" else None
    found = trace(checkpoint, sentence, strategy=strategy)
    return tuple(
        role
        for stack, kind in found.attention_kinds()
        for layer in range(found.n_layers(stack))
        for role in head_roles(found.attention(stack, layer, kind))
    )


def sentence_json(checkpoint: Checkpoint, roles: Sequence[HeadRole]) -> dict:
    """For ``json.dumps``, which knows no NaN: a measure that is not defined is null."""
    heads = [
        {**asdict(role), "scores": {name: None if math.isnan(v) else v for name, v in role.scores.items()}}
        for role in roles
    ]
    return {"checkpoint": checkpoint.name, "fingerprint": checkpoint.fingerprint, "heads": heads}


def sentence_report(roles: Sequence[HeadRole]) -> str:
    lines = [f"{'head':<32}{'role':<13}{'score':>6}{'entropy':>9}{'distance':>10}"]
    for role in roles:
        place = f"{role.stack} {role.kind} layer {role.layer} head {role.head}"
        numbers = f"{role.score:>6.2f}{role.scores['entropy']:>9.2f}{role.scores['distance']:>10.2f}"
        lines.append(f"{place:<32}{role.role:<13}{numbers}")
    return "\n".join(lines)
