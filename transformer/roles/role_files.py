"""``head_roles.json`` in a checkpoint directory: the roles of its heads over many sentences, computed once.

The file says what it was made from: the checkpoint's fingerprint, the digest of the sentences, the task before each of
them (of a model of several tasks), the thresholds of the definitions and the seed. If one of these has changed, the app
does not use the file. Version 2 has the tests of the literature as well (``transformer.roles``); a file of version 1,
which has none and says no version, still opens.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformer.disk.plain_files import read_plain_text
from transformer.disk.whole_files import write_text
from transformer.errors import CheckpointError
from transformer.files.checkpoints import Checkpoint
from transformer.roles import alignment, head_roles, induction, places, positional, syntactic, tally
from transformer.roles.annotations import ARCS, PAIRS
from transformer.roles.corpus_roles import LEAST_CONSISTENT, CorpusRole, CorpusRoles
from transformer.roles.induction import InductionTest
from transformer.roles.measures import MEASURES, HeadMeasures
from transformer.roles.tally import Measure
from transformer.runs.readings import attention_layers, task_before
from transformer.text.sentence_files import sentence_digest

FILE = "head_roles.json"
VERSION = 2
_DIGITS = 6  # significant ones
_FEWER = 4  # of the tests of the literature


@dataclass(frozen=True)
class SavedRoles:
    """What a file holds. ``sentence_file``: the name of the file that the sentences came from."""

    roles: CorpusRoles
    sentence_file: str


def thresholds(version: int = VERSION) -> dict[str, float]:
    """All numbers that the definitions of roles depend on."""
    tests = {
        "least_on_offset": positional.LEAST_ON_OFFSET,
        "least_window_lift": positional.LEAST_WINDOW_LIFT,
        "most_offset": positional.MAX_OFFSET,
        "least_above_offset": syntactic.LEAST_ABOVE_OFFSET,
        "least_above_rule": alignment.LEAST_ABOVE_RULE,
        "least_place_share": places.LEAST_SHARE,
        "least_place_lift": places.LEAST_LIFT,
        "least_rows_of_a_measure": tally.LEAST_ROWS,
    }
    return {
        "least_share": head_roles.LEAST_SHARE,
        "least_lift": head_roles.LEAST_LIFT,
        "least_monotone": head_roles.LEAST_MONOTONE,
        "least_broad": head_roles.LEAST_BROAD,
        "least_rows": head_roles.LEAST_ROWS,
        "least_consistent": LEAST_CONSISTENT,
        "least_induction": induction.LEAST_INDUCTION,
        **(tests if version > 1 else {}),
    }


def annotation_digest() -> str:
    """Names the annotated sentences and pairs as they are now."""
    return sentence_digest(path.read_text(encoding="utf-8") for path in (ARCS, PAIRS))


def as_json(checkpoint: Checkpoint, roles: CorpusRoles, *, sentence_file: str) -> dict[str, Any]:
    """What is written: plain values only, numbers to six digits, ``null`` for a measure that is not defined."""
    test, task = roles.induction, task_before(checkpoint)
    return {
        "version": VERSION,
        "checkpoint": checkpoint.fingerprint,
        "sentence_file": sentence_file,
        "sentences": roles.n_sentences,
        "skipped": roles.n_skipped,
        "sentence_digest": roles.digest,
        **({"task": task} if task else {}),
        "annotation_digest": annotation_digest(),
        "thresholds": thresholds(),
        "induction": None
        if test is None
        else {"lengths": list(test.lengths), "seed": test.seed, "chance": _rounded(test.chance)},
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
        values = json.loads(read_plain_text(path))
        found, limits, version = values["checkpoint"], values["thresholds"], values.get("version", 1)
        lengths = list(induction.repeated_lengths(checkpoint.config.max_length))
        same = (
            limits == thresholds(version)
            and values.get("task", "") == task_before(checkpoint)
            and (version == 1 or values["annotation_digest"] == annotation_digest())
            and (values["induction"] is None or values["induction"].get("lengths") == lengths)
        )
        if found == checkpoint.fingerprint and same:
            return SavedRoles(_roles_from(checkpoint, values), str(values["sentence_file"]))
    except (KeyError, TypeError, ValueError, AttributeError, OSError, RecursionError) as error:
        raise broken_file(checkpoint, FILE, error) from error
    if found != checkpoint.fingerprint:
        raise file_of_other_weights(checkpoint, FILE, found)
    raise CheckpointError(
        "{path} of {name} was made with other definitions of the roles; it is not used.",
        path=FILE,
        name=checkpoint.name,
    )


def broken_file(checkpoint: Checkpoint, file: str, what: Exception) -> CheckpointError:
    """The error for a ``file`` beside the weights that cannot be read."""
    return CheckpointError(
        "{path} of {name} is not a complete file of head roles ({what}).", path=file, name=checkpoint.name, what=what
    )


def file_of_other_weights(checkpoint: Checkpoint, file: str, found: str) -> CheckpointError:
    """The error for a ``file`` that names the weights with the fingerprint ``found`` and not these."""
    return CheckpointError(
        "{path} of {name} was made from other weights ({found}, but these are {these}), so it is not used.",
        path=file,
        name=checkpoint.name,
        found=found,
        these=checkpoint.fingerprint,
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
        **_measured_as_json(head.measured),
    }


def _measured_as_json(measured: HeadMeasures) -> dict[str, Any]:
    """A measure is [score, chance, least, rows]."""
    return {
        "measures": {
            name: [*(_rounded(value, _FEWER) for value in (one.score, one.chance, one.least)), one.rows]
            for name, one in measured.measures.items()
        },
        "where": dict(measured.where),
        "profile": {str(offset): _rounded(weight, _FEWER) for offset, weight in measured.profile.items()},
        "error_rates": {name: _rounded(rate, _FEWER) for name, rate in measured.error_rates.items()},
    }


def _measured_from(values: dict[str, Any]) -> HeadMeasures:
    if unknown := set(values.get("measures", {})) - set(MEASURES):
        raise ValueError(f"it names a measure {min(unknown)!r} that does not exist")
    return HeadMeasures(
        {
            name: Measure(*map(float, numbers), int(rows))
            for name, (*numbers, rows) in values.get("measures", {}).items()
        },
        {name: int(offset) for name, offset in values.get("where", {}).items()},
        {int(offset): float(weight) for offset, weight in values.get("profile", {}).items()},
        {name: float(rate) for name, rate in values.get("error_rates", {}).items()},
    )


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
        test = InductionTest(tuple(said["lengths"]), said["seed"], said["chance"], **measured)
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
        measured=_measured_from(values),
    )


def _rounded(value: float, digits: int = _DIGITS) -> float | None:
    return None if math.isnan(value) else float(f"{value:.{digits}g}")
