"""``head_roles.json`` in a checkpoint directory: roles of its heads over many sentences.

The file records what it was made from: the checkpoint's fingerprint, the digest of the sentences, the task before each
of them (for a model of several tasks), the thresholds of the definitions and the seed. If one of these has changed, the
app does not use the file.
"""

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
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
from transformer.heads.head_roles import LEAST_CONSISTENT, MEASURES, ROLES, CorpusRoles, HeadRole
from transformer.heads.induction import InductionTest
from transformer.heads.weight_patterns import Measure
from transformer.runs.head_places import Head, all_heads
from transformer.runs.readings import task_before
from transformer.text.sentence_files import sentence_digest

FILE = "head_roles.json"
VERSION = 2
_DIGITS = 6  # significant digits
_FEWER = 4  # significant digits for the tests of the literature


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
    """Return the file's content: plain values, numbers with six digits, ``null`` for undefined measures."""
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
    """Write ``head_roles.json`` into the checkpoint's directory, complete or not at all; return its path.

    Each head has a line of its own, so that two files can be compared line by line. The same checkpoint and sentences
    give the same bytes on the same machine.
    """
    values, path = as_json(checkpoint, roles, sentence_file=sentence_file), file_of_results(checkpoint.path, FILE)
    front = [f" {json.dumps(name)}: {json.dumps(value)}," for name, value in values.items() if name != "heads"]
    rows = ",\n".join(f"  {json.dumps(head)}" for head in values["heads"])
    write_text(path, "\n".join(["{", *front, ' "heads": [', rows, " ]", "}"]) + "\n")
    return path


def load_corpus_roles(checkpoint: Checkpoint) -> CorpusRoles | None:
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
            return _roles_from(checkpoint, values)
    except (KeyError, TypeError, ValueError, AttributeError, OSError, RecursionError) as error:
        problem = f"{FILE} of {checkpoint.name} is not a complete file of head roles ({text_of(error)})."
        raise CheckpointError(problem) from error
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
    for role in saved.of("decoder", "cross") if saved else ():
        layers[role.layer].append(role.scores["monotone"])
    steady = {layer: float(np.nanmean(scores)) for layer, scores in layers.items()}
    return max(steady, key=steady.__getitem__, default=None)


def _head_as_json(head: HeadRole) -> dict[str, Any]:
    """Return one head as JSON values; a measure is [score, chance, least, rows]."""
    return {
        **head.place._asdict(),
        "role": head.role,
        "sentences": head.n_sentences,
        "shares": _all_rounded(head.shares),
        "scores": _all_rounded(head.scores),
        "measures": {
            name: [*(_round(value, _FEWER) for value in (one.score, one.chance, one.least)), one.rows]
            for name, one in head.measures.items()
        },
        "where": {name: one.offset for name, one in head.measures.items() if one.offset is not None},
    }


def _roles_from(checkpoint: Checkpoint, values: dict[str, Any]) -> CorpusRoles:
    heads, expected = tuple(map(_head_from, values["heads"])), all_heads(checkpoint.config)
    if tuple(head.place for head in heads) != expected:
        raise ValueError(f"it lists {len(heads)} heads, which are not the {len(expected)} of this model in their order")
    test = None
    if (said := values["induction"]) is not None:
        test = InductionTest(tuple(said["lengths"]), said["seed"], said["chance"])
    counts = (int(values["sentences"]), int(values["skipped"]))
    return CorpusRoles(heads, *counts, str(values["sentence_digest"]), test)


def _head_from(values: dict[str, Any]) -> HeadRole:
    measures, where = values["measures"], {name: int(offset) for name, offset in values["where"].items()}
    _check_known("a role", (values["role"], *values["shares"]), ROLES)
    _check_known("a measure", measures, MEASURES)
    return HeadRole(
        *(values[name] for name in Head._fields),
        role=values["role"],
        shares=_numbers(values["shares"]),
        scores=_numbers(values["scores"]),
        n_sentences=int(values["sentences"]),
        measures={
            name: Measure(float(score), float(chance), float(least), int(rows), where.get(name))
            for name, (score, chance, least, rows) in measures.items()
        },
    )


def _check_known(what: str, names: Sequence[str] | Mapping[str, Any], known: Sequence[str]) -> None:
    if unknown := set(names) - set(known):
        raise ValueError(f"it names {what} {min(map(str, unknown))!r} that does not exist")


def _numbers(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: math.nan if value is None else float(value) for name, value in values.items()}


def _all_rounded(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: _round(value) for name, value in values.items()}


def _round(value: float, digits: int = _DIGITS) -> float | None:
    return None if math.isnan(value) else float(f"{value:.{digits}g}")
