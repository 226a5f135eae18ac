"""``head_roles.json`` in a checkpoint directory: roles of its heads over many sentences.

The file records what it was made from: the checkpoint's fingerprint, the digest of the sentences, the task before each
of them (for a model of several tasks), the thresholds of the definitions and the seed. If one of these has changed, the
app does not use the file.
"""

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from transformer.disk.plain_files import read_plain_text
from transformer.disk.whole_files import write_text
from transformer.errors import CheckpointError, text_of
from transformer.files.checkpoints import Checkpoint, file_of_other_weights
from transformer.files.layout import file_of_results, is_same_fingerprint
from transformer.heads import annotated_words, induction, weight_patterns
from transformer.heads.annotated_words import ARCS, PAIRS
from transformer.heads.head_roles import LEAST_CONSISTENT, CorpusRole, CorpusRoles
from transformer.heads.induction import InductionTest
from transformer.heads.role_measures import MEASURES, ROLES, HeadMeasures
from transformer.heads.weight_patterns import Measure
from transformer.runs.head_places import Head, all_heads
from transformer.runs.readings import task_before
from transformer.text.sentence_files import sentence_digest

FILE = "head_roles.json"
VERSION = 2
_DIGITS = 6  # significant digits
_FEWER = 4  # significant digits for the tests of the literature


@dataclass(frozen=True)
class SavedRoles:
    """Contents of a file; ``sentence_file`` is the name of the file that the sentences came from."""

    roles: CorpusRoles
    sentence_file: str


def thresholds() -> dict[str, float]:
    """Return all numbers that the definitions of roles depend on."""
    return {
        "least_on_offset": weight_patterns.LEAST_ON_OFFSET,
        "least_window_lift": weight_patterns.LEAST_WINDOW_LIFT,
        "most_offset": weight_patterns.MAX_OFFSET,
        "least_above_offset": annotated_words.LEAST_ABOVE_OFFSET,
        "least_above_rule": annotated_words.LEAST_ABOVE_RULE,
        "least_place_share": weight_patterns.LEAST_SHARE,
        "least_place_lift": weight_patterns.LEAST_LIFT,
        "least_rows_of_a_measure": weight_patterns.LEAST_ROWS_IN_ALL,
        "least_share": weight_patterns.LEAST_SHARE,
        "least_lift": weight_patterns.LEAST_LIFT,
        "least_monotone": weight_patterns.LEAST_MONOTONE,
        "least_broad": weight_patterns.LEAST_BROAD,
        "least_rows": weight_patterns.LEAST_ROWS,
        "least_consistent": LEAST_CONSISTENT,
        "least_induction": induction.LEAST_INDUCTION,
    }


def annotation_digest() -> str:
    """Return a hash of the current annotated sentences and pairs."""
    return sentence_digest(path.read_text(encoding="utf-8") for path in (ARCS, PAIRS))


def as_json(checkpoint: Checkpoint, roles: CorpusRoles, *, sentence_file: str) -> dict[str, Any]:
    """Return what is written: plain values, numbers to six digits, ``null`` for undefined measures."""
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
        else {"lengths": list(test.lengths), "seed": test.seed, "chance": _round(test.chance)},
        "heads": [_head_as_json(head) for head in roles.heads],
    }


def save_corpus_roles(checkpoint: Checkpoint, roles: CorpusRoles, *, sentence_file: str) -> Path:
    """Write ``head_roles.json`` into the checkpoint's directory, all or nothing; return its path.

    The same checkpoint and sentences give the same bytes on the same machine.
    """
    return write_heads(checkpoint, FILE, as_json(checkpoint, roles, sentence_file=sentence_file))


def write_heads(checkpoint: Checkpoint, file: str, values: Mapping[str, Any]) -> Path:
    """Write a JSON object beside the weights, its "heads" last and one per line, for comparison."""
    front = [f" {json.dumps(name)}: {json.dumps(value)}," for name, value in values.items() if name != "heads"]
    rows = ",\n".join(f"  {json.dumps(head)}" for head in values["heads"])
    path = file_of_results(checkpoint.path, file)
    write_text(path, "\n".join(["{", *front, ' "heads": [', rows, " ]", "}"]) + "\n")
    return path


def load_corpus_roles(checkpoint: Checkpoint) -> SavedRoles | None:
    """Load what ``save_corpus_roles`` wrote for exactly this checkpoint; ``None`` if there is no file.

    Raises:
        CheckpointError: If the file is broken, belongs to other weights, or was made by other definitions.
    """
    path = file_of_results(checkpoint.path, FILE)
    if not path.is_file():
        return None
    try:
        values = json.loads(read_plain_text(path))
        found = values["checkpoint"]
        lengths = list(induction.repeated_lengths(checkpoint.config.max_length))
        same = (
            values["version"] == VERSION
            and values["thresholds"] == thresholds()
            and values.get("task", "") == task_before(checkpoint)
            and values["annotation_digest"] == annotation_digest()
            and (values["induction"] is None or values["induction"].get("lengths") == lengths)
        )
        if is_same_fingerprint(found, checkpoint.fingerprint) and same:
            return SavedRoles(_roles_from(checkpoint, values), str(values["sentence_file"]))
    except (KeyError, TypeError, ValueError, AttributeError, OSError, RecursionError) as error:
        raise broken_file(checkpoint, FILE, error) from error
    if not is_same_fingerprint(found, checkpoint.fingerprint):
        raise file_of_other_weights(checkpoint, FILE, found)
    raise CheckpointError(f"{FILE} of {checkpoint.name} was made with other definitions of the roles; it is not used.")


def best_alignment(checkpoint: Checkpoint) -> int | None:
    """Return the layer whose cross-attention moves most steadily through the source, over many sentences.

    ``None`` where nothing was measured for these weights.
    """
    try:
        saved = load_corpus_roles(checkpoint)
    except CheckpointError:
        return None
    layers = defaultdict(list)
    for role in saved.roles.of("decoder", "cross") if saved else ():
        layers[role.layer].append(role.scores["monotone"])
    steady = {layer: float(np.nanmean(scores)) for layer, scores in layers.items()}
    return max(steady, key=steady.__getitem__, default=None)


def broken_file(checkpoint: Checkpoint, file: str, what: Exception) -> CheckpointError:
    """Return the error for a ``file`` beside the weights that cannot be read."""
    return CheckpointError(f"{file} of {checkpoint.name} is not a complete file of head roles ({text_of(what)}).")


def _head_as_json(head: CorpusRole) -> dict[str, Any]:
    """Return one head as JSON values; a measure is [score, chance, least, rows]."""
    measured = head.measured
    return {
        **head.place._asdict(),
        "role": head.role,
        "sentences": head.n_sentences,
        "shares": _all_rounded(head.shares),
        "scores": _all_rounded(head.scores),
        "counts": dict(head.counts),
        "measures": {
            name: [*(_round(value, _FEWER) for value in (one.score, one.chance, one.least)), one.rows]
            for name, one in measured.measures.items()
        },
        "where": dict(measured.where),
        "profile": _all_rounded(measured.profile, _FEWER),
        "error_rates": _all_rounded(measured.error_rates, _FEWER),
    }


def _roles_from(checkpoint: Checkpoint, values: dict[str, Any]) -> CorpusRoles:
    heads, expected = tuple(map(_head_from, values["heads"])), all_heads(checkpoint.config)
    if tuple(head.place for head in heads) != expected:
        raise ValueError(f"it lists {len(heads)} heads, which are not the {len(expected)} of this model in their order")
    test = None
    if (said := values["induction"]) is not None:
        scores = ({head.place: head.scores[name] for head in heads} for name in ("induction", "previous_random"))
        test = InductionTest(tuple(said["lengths"]), said["seed"], said["chance"], *scores)
    counts = (int(values["sentences"]), int(values["skipped"]))
    return CorpusRoles(heads, *counts, str(values["sentence_digest"]), test)


def _head_from(values: dict[str, Any]) -> CorpusRole:
    _check_known("a role", (values["role"], *values["shares"]), ROLES)
    return CorpusRole(
        *(values[name] for name in Head._fields),
        role=values["role"],
        shares=_numbers(values["shares"]),
        scores=_numbers(values["scores"]),
        counts={name: int(count) for name, count in values["counts"].items()},
        n_sentences=int(values["sentences"]),
        measured=_measured_from(values),
    )


def _measured_from(values: dict[str, Any]) -> HeadMeasures:
    measures = values["measures"]
    _check_known("a measure", measures, MEASURES)
    return HeadMeasures(
        {name: Measure(*map(float, numbers), int(rows)) for name, (*numbers, rows) in measures.items()},
        {name: int(offset) for name, offset in values["where"].items()},
        {int(offset): float(weight) for offset, weight in values["profile"].items()},
        _numbers(values["error_rates"]),
    )


def _check_known(what: str, names: Sequence[str] | Mapping[str, Any], known: Sequence[str]) -> None:
    if unknown := set(names) - set(known):
        raise ValueError(f"it names {what} {min(map(str, unknown))!r} that does not exist")


def _numbers(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: math.nan if value is None else float(value) for name, value in values.items()}


def _all_rounded(values: Mapping[Any, float], digits: int = _DIGITS) -> dict[str, float | None]:
    return {str(name): _round(value, digits) for name, value in values.items()}


def _round(value: float, digits: int = _DIGITS) -> float | None:
    return None if math.isnan(value) else float(f"{value:.{digits}g}")
