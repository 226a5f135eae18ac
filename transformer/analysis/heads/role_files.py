"""``head_roles.json`` in a checkpoint directory: the roles of its heads over many sentences, computed once.

The file says what it was made from: the checkpoint's fingerprint, the digest of the sentences, the thresholds of the
definitions and the seed. If one of these has changed, the app does not use the file.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformer.analysis.heads import head_roles, induction
from transformer.analysis.heads.corpus_roles import LEAST_CONSISTENT, CorpusRole, CorpusRoles, attention_layers
from transformer.analysis.heads.induction import InductionTest
from transformer.errors import CheckpointError
from transformer.files.checkpoints import Checkpoint
from transformer.files.whole_files import write_text

FILE = "head_roles.json"
_DIGITS = 6  # significant ones


@dataclass(frozen=True)
class SavedRoles:
    """What a file holds. ``sentence_file``: the name of the file that the sentences came from."""

    roles: CorpusRoles
    sentence_file: str


def thresholds() -> dict[str, float]:
    """All numbers that the definitions of roles depend on."""
    return {
        "least_share": head_roles.LEAST_SHARE,
        "least_lift": head_roles.LEAST_LIFT,
        "least_monotone": head_roles.LEAST_MONOTONE,
        "least_broad": head_roles.LEAST_BROAD,
        "least_rows": head_roles.LEAST_ROWS,
        "least_consistent": LEAST_CONSISTENT,
        "least_induction": induction.LEAST_INDUCTION,
    }


def as_json(checkpoint: Checkpoint, roles: CorpusRoles, *, sentence_file: str) -> dict[str, Any]:
    """What is written: plain values only, numbers to six digits, ``null`` for a measure that is not defined."""
    test = roles.induction
    return {
        "checkpoint": checkpoint.fingerprint,
        "sentence_file": sentence_file,
        "sentences": roles.n_sentences,
        "skipped": roles.n_skipped,
        "sentence_digest": roles.digest,
        "thresholds": thresholds(),
        "induction": None
        if test is None
        else {"sequences": test.n_sequences, "length": test.length, "seed": test.seed, "chance": _rounded(test.chance)},
        "heads": [_head_as_json(head) for head in roles.heads],
    }


def save_corpus_roles(checkpoint: Checkpoint, roles: CorpusRoles, *, sentence_file: str) -> Path:
    """Write ``head_roles.json`` into the checkpoint's directory, whole or not at all; returns its path.

    The same checkpoint and sentences give the same bytes on the same machine.
    """
    *front, (_, heads) = as_json(checkpoint, roles, sentence_file=sentence_file).items()
    lines = [f" {json.dumps(name)}: {json.dumps(value)}," for name, value in front]
    rows = ",\n".join(f"  {json.dumps(head)}" for head in heads)  # one head per line, for a comparison of two files
    path = checkpoint.path / FILE
    write_text(path, "\n".join(["{", *lines, ' "heads": [', rows, " ]", "}"]) + "\n")
    return path


def load_corpus_roles(checkpoint: Checkpoint) -> SavedRoles | None:
    """What ``save_corpus_roles`` wrote for this very checkpoint; ``None`` where there is no such file.

    Raises ``CheckpointError``, a sentence, for a file that is broken, that belongs to other weights, or that was made
    by other definitions.
    """
    path = checkpoint.path / FILE
    if not path.is_file():
        return None
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        found, limits = values["checkpoint"], values["thresholds"]
        if found == checkpoint.fingerprint and limits == thresholds():
            return SavedRoles(_roles_from(checkpoint, values), str(values["sentence_file"]))
    except (KeyError, TypeError, ValueError, AttributeError, OSError) as error:
        raise CheckpointError(
            "{path} of {name} is no whole file of head roles ({what}).", path=FILE, name=checkpoint.name, what=error
        ) from error
    if found != checkpoint.fingerprint:
        raise CheckpointError(
            "{path} of {name} was made from other weights ({found}, but these are {these}), so it is not used.",
            path=FILE,
            name=checkpoint.name,
            found=found,
            these=checkpoint.fingerprint,
        )
    raise CheckpointError(
        "{path} of {name} was made by other definitions of the roles; it is not used.", path=FILE, name=checkpoint.name
    )


def _head_as_json(head: CorpusRole) -> dict[str, Any]:
    return {
        "stack": head.stack,
        "kind": head.kind,
        "layer": head.layer,
        "head": head.head,
        "role": head.role,
        "sentences": head.n_sentences,
        "shares": {role: _rounded(share) for role, share in head.shares.items()},
        "scores": {name: _rounded(score) for name, score in head.scores.items()},
        "counts": dict(head.counts),
    }


def _roles_from(checkpoint: Checkpoint, values: dict[str, Any]) -> CorpusRoles:
    heads = tuple(_head_from(head) for head in values["heads"])
    layers, heads_in = attention_layers(checkpoint), checkpoint.config.heads_in
    expected = [(*layer, head) for layer in layers for head in range(heads_in(layer[0]))]
    if [(head.stack, head.kind, head.layer, head.head) for head in heads] != expected:
        raise ValueError(f"it lists {len(heads)} heads, which are not the {len(expected)} of this model in their order")
    test = None
    if (said := values["induction"]) is not None:
        measured = {
            name: {(head.layer, head.head): head.scores[score] for head in heads}
            for name, score in (("induction", "induction"), ("previous", "previous_random"))
        }
        test = InductionTest(said["sequences"], said["length"], said["seed"], said["chance"], **measured)
    counts = (int(values["sentences"]), int(values["skipped"]))
    return CorpusRoles(heads, *counts, str(values["sentence_digest"]), test)


def _head_from(values: dict[str, Any]) -> CorpusRole:
    known = {name: float(share) for name, share in values["shares"].items()}
    if unknown := {values["role"], *known} - set(head_roles.ROLES):
        raise ValueError(f"it names a role {min(map(str, unknown))!r} that does not exist")
    return CorpusRole(
        stack=values["stack"],
        kind=values["kind"],
        layer=values["layer"],
        head=values["head"],
        role=values["role"],
        shares=known,
        scores={name: math.nan if score is None else float(score) for name, score in values["scores"].items()},
        counts={name: int(count) for name, count in values["counts"].items()},
        n_sentences=int(values["sentences"]),
    )


def _rounded(value: float) -> float | None:
    return None if math.isnan(value) else float(f"{value:.{_DIGITS}g}")
