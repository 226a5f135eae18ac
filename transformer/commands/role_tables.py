"""Roles as tables: over many sentences, and in one."""

import math
from collections import Counter
from collections.abc import Sequence

from transformer.files.checkpoints import Checkpoint
from transformer.heads.head_roles import LEAST_CONSISTENT, LEAST_LEANING, CorpusRoles, HeadRole, head_roles
from transformer.heads.induction import LEAST_INDUCTION, InductionTest
from transformer.runs.decoding_strategies import Greedy
from transformer.runs.head_places import LocatedAtHead
from transformer.runs.readings import task_before
from transformer.runs.tracing import trace

_MEASURES = ("entropy", "confidence", "sinks", "diagonal", "monotone", "induction")


def report(checkpoint: Checkpoint, roles: CorpusRoles, *, sentence_file: str) -> str:
    """Return a table with one line per head, with its source above and a summary below."""
    limit = checkpoint.config.max_length
    measures = [name for name in _MEASURES if any(not math.isnan(_score(head, name)) for head in roles.heads)]
    head_line = f"{'layer and head':<22}{'role':<14}{'in':>6}   {'largest share':<20}{'strongest test':<24}" + "".join(
        f"{name:>12}" for name in measures
    )
    lines = [
        f"{checkpoint.name} {checkpoint.short_fingerprint}: {roles.n_sentences} sentences of {sentence_file} "
        f"({roles.digest})"
        + (f", {roles.n_skipped} skipped: empty, or longer than the {limit} tokens it reads" if roles.n_skipped else "")
        + (f', each behind "{task}"' if (task := task_before(checkpoint)) else ""),
        f"role: what the head does in at least {LEAST_CONSISTENT:.0%} of the sentences; in brackets: what it does less "
        f"often, but in {LEAST_LEANING:.0%} of them or more; –: no clear role; strongest test: that of the literature "
        "which says most about the head, with a star where its threshold is reached",
        "",
        head_line,
        *(_line(head, measures) for head in roles.heads),
        "",
        f"{sum(head.role != 'none' for head in roles.heads)} of {len(roles.heads)} heads have a role",
        _roles_line(roles),
    ]
    if roles.induction is not None:
        lines.append(_induction_line(roles.induction, roles.heads))
    return "\n".join(lines)


def _roles_line(roles: CorpusRoles) -> str:
    """Return how many heads reach the threshold of a test of the literature, by test."""
    names = Counter(head.strongest for head in roles.heads if head.has_role)
    counts = ", ".join(f"{name} {count}" for name, count in names.most_common()) or "none"
    return f"{names.total()} of {len(roles.heads)} have a role by the tests of the literature: {counts}"


def _strongest(head: HeadRole) -> str:
    """Format the strongest measure: "offset -1 0.89", with a star if it reaches the threshold."""
    if not (name := head.strongest):
        return "–"
    found = head.measures[name]
    where = f" {found.offset:+d}" if found.offset is not None else ""
    return f"{name}{where} {found.score:.2f}{'*' if head.clear else ''}"


def _line(head: HeadRole, measures: list[str]) -> str:
    does = head.leaning or head.role
    name = "–" if does == "none" else f"({does})" if head.leaning else does
    numbers = "".join(f"{_number(_score(head, measure)):>12}" for measure in measures)
    nearest = head.nearest
    largest = f"{nearest} {_number(_score(head, nearest))}" if nearest else "–"
    share = f"{head.shares.get(does, 0.0):.0%}" if head.n_sentences else "–"
    return f"{_place(head):<22}{name:<14}{share:>6}   {largest:<20}{_strongest(head):<24}{numbers}"


def _induction_line(test: InductionTest, heads: Sequence[HeadRole]) -> str:
    best = max(heads, key=lambda head: head.scores["induction"])
    passed = [head for head in heads if head.scores["induction"] >= LEAST_INDUCTION]
    found = ", ".join(f"{head.layer}.{head.head}" for head in passed) or "none"
    return (
        f"induction heads (at least {LEAST_INDUCTION} in {len(test.lengths)} sequences of {min(test.lengths)} to "
        f"{max(test.lengths)} random tokens, each written twice): {found}; the largest score is "
        f"{_number(best.scores['induction'])} (head {best.layer}.{best.head}), evenly spread attention scores "
        f"{_number(test.chance)}"
    )


def _place(head: LocatedAtHead) -> str:
    return f"{head.stack} {head.kind} {head.layer}.{head.head}"


def _score(head: HeadRole, name: str) -> float:
    return head.scores.get(name, math.nan)


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3g}"


def roles_of_sentence(checkpoint: Checkpoint, sentence: str) -> tuple[HeadRole, ...]:
    """Return the role of every head, in the order of the forward pass.

    A decoder-only model reads only the sentence, without a continuation.

    Raises:
        InputError: If the model cannot take the sentence.
    """
    strategy = Greedy(1) if checkpoint.config.kind == "decoder-only" else None
    found = trace(checkpoint, sentence, strategy=strategy)
    return tuple(role for view in found.attention_views() for role in head_roles(view))


def sentence_json(checkpoint: Checkpoint, roles: Sequence[HeadRole]) -> dict:
    """Return values for ``json.dumps``, which has no NaN: an undefined measure is null."""
    heads = [
        {
            **role.place._asdict(),
            "role": role.role,
            "scores": {name: None if math.isnan(value) else value for name, value in role.scores.items()},
        }
        for role in roles
    ]
    return {"checkpoint": checkpoint.name, "fingerprint": checkpoint.fingerprint, "heads": heads}


def sentence_report(roles: Sequence[HeadRole]) -> str:
    """Return a table of the roles in one sentence."""
    lines = [f"{'head':<32}{'role':<13}{'score':>6}{'entropy':>9}{'distance':>10}"]
    for role in roles:
        place = f"{role.stack} {role.kind} layer {role.layer} head {role.head}"
        numbers = f"{role.score:>6.2f}{role.scores['entropy']:>9.2f}{role.scores['distance']:>10.2f}"
        lines.append(f"{place:<32}{role.role:<13}{numbers}")
    return "\n".join(lines)
