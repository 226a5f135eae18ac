"""What the tests of the literature (``transformer.heads``) say of a head, in words and as tables."""

from collections import Counter
from collections.abc import Sequence

import pandas as pd

from charts.toolkit.numbers import number
from charts.toolkit.style import three_digits
from transformer.heads.head_roles import CorpusRole
from transformer.heads.role_measures import GENERAL, MEASURES, NO_ROLE, HeadMeasures
from ui.lab.head_table import test_name
from ui.words.texts import PageText, as_plain
from views.heads.corpus import Corpus


def measure_name(name: str, measured: HeadMeasures, text: PageText, *, short: bool = False) -> str:
    """As ``test_name``, of one head."""
    return test_name(name, measured.where.get(name, 0), text, short=short)


def measure_captions(heads: Sequence[CorpusRole], text: PageText) -> dict[tuple[int, int], str]:
    """Under every tile the strongest test with its score."""
    return {(head.layer, head.head): _caption(head.measured, text) for head in heads}


def measure_text(measured: HeadMeasures, text: PageText) -> str:
    """The strongest test of one head with its score, its threshold and its chance level."""
    name = measured.strongest
    one = measured.measures[name]
    numbers = {key: three_digits(getattr(one, key)) for key in ("score", "least", "chance")}
    said = text["tests_clear" if measured.has_role else "tests_no_job" if measured.clear else "tests_weak"]
    return said.format(test=measure_name(name, measured, text), **numbers)


def jobs_text(measured: HeadMeasures, text: PageText) -> str:
    """Every job that one head has by the tests, the strongest first; else as ``measure_text``. A head may rest in most
    sentences and find what followed a word where one comes again."""
    reached = [
        (one.strength, name)
        for name, one in measured.measures.items()
        if one.reached and name not in (*GENERAL, *NO_ROLE)
    ]
    if len(reached) < 2:
        return measure_text(measured, text)
    told = []
    for _, name in sorted(reached, reverse=True):
        one = measured.measures[name]
        numbers = {key: three_digits(getattr(one, key)) for key in ("score", "least", "chance")}
        told.append(text["tests_clear"].format(test=measure_name(name, measured, text), **numbers))
    return ", ".join(told)


def measure_counts(corpus: Corpus, heads: Sequence[CorpusRole], text: PageText) -> str:
    """How many of these heads have a job, which, and how many of the whole model, in one sentence."""
    found = Counter(
        measure_name(head.measured.strongest, head.measured, text) for head in heads if head.measured.has_role
    )
    counts = ", ".join(text["tests_count"].format(count=n, test=name) for name, n in found.most_common())
    every = corpus.roles.heads
    return text["tests_counted"].format(
        count=corpus.roles.n_sentences,
        name=as_plain(corpus.name),
        jobs=found.total(),
        heads=len(heads),
        found=text["tests_found"].format(found=counts) if counts else "",
        all=len(every),
        all_jobs=sum(head.measured.has_role for head in every),
    )


def measure_table(heads: Sequence[CorpusRole], text: PageText) -> pd.DataFrame:
    """One row a head: its strongest test with score, chance and threshold, then the score of every test."""
    names = [name for name in MEASURES if any(name in head.measured.measures for head in heads)]
    rates = [name for name in ("aligned_next", "aligned_read") if any(name in h.measured.error_rates for h in heads)]
    rows = []
    for head in heads:
        measured = head.measured
        strongest = measured.measures.get(measured.strongest)
        rows.append(
            {
                text["column_layer"]: head.layer,
                text["column_head"]: head.head,
                text["column_test"]: measure_name(measured.strongest, measured, text) if strongest else "",
                text["column_test_score"]: strongest.score if strongest else None,
                text["column_chance"]: strongest.chance if strongest else None,
                text["column_least"]: strongest.least if strongest else None,
                **{_column(name, text): _score(measured, name) for name in names},
                **{f"AER: {_column(name, text)}": measured.error_rates.get(name) for name in rates},
            }
        )
    return pd.DataFrame(rows)


def _caption(measured: HeadMeasures, text: PageText) -> str:
    name = measured.strongest
    if not name:
        return "–"
    return f"{measure_name(name, measured, text, short=True)} {number(f'{measured.measures[name].score:.2f}')}"


def _column(name: str, text: PageText) -> str:
    """The name of a test whatever the offset of a head."""
    return text["test"][name].replace("{where}", "").replace("{end}", "").replace("  ", " ").strip()


def _score(measured: HeadMeasures, name: str) -> float | None:
    return measured.measures[name].score if name in measured.measures else None
