"""The atlas of a model's heads as data: a CSV, and JSON files in a folder laid out as HeadVis's (Anthropic 2026).

``config.json`` says what was read, ``scatter_data.json`` has all measures of every head, ``heads/L{layer}H{head}.json``
the examples of one head by kind of place and by interval. A model with several kinds of attention gets such a folder
for each of them (``encoder_self/``, …). The fields are our own: HeadVis has no cross-attention, and no kinds of place.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from transformer.disk.tables import csv_text
from transformer.disk.whole_files import write_text
from transformer.files.checkpoints import Checkpoint
from transformer.heads.firing_examples import Example
from transformer.heads.head_habits import HeadHabits
from transformer.runs.head_places import Head
from transformer.text.sentence_files import sentence_digest

TABLE = "heads.csv"
Habits = Mapping[Head, HeadHabits]


def write_data(folder: Path, checkpoint: Checkpoint, found: Habits, sentences: Sequence[str]) -> Iterator[Path]:
    """Writes all files, one after the other; yields the path of each."""
    yield _written(folder / TABLE, csv_text([row(habits) for habits in found.values()]))
    attentions = dict.fromkeys((head.stack, head.kind) for head in found)
    for stack, kind in attentions:
        own = [habits for head, habits in found.items() if (head.stack, head.kind) == (stack, kind)]
        place = folder / f"{stack}_{kind}" if len(attentions) > 1 else folder
        config = {
            "model": checkpoint.name,
            "fingerprint": checkpoint.fingerprint,
            "attention": [stack, kind],
            "n_layers": 1 + max(habits.head.layer for habits in own),
            "n_heads": 1 + max(habits.head.head for habits in own),
            "n_sentences": len(sentences),
            "sentences": sentence_digest(sentences),
            "metrics": [name for name, value in row(own[0]).items() if isinstance(value, float)],
        }
        yield _written(place / "config.json", json.dumps(config, ensure_ascii=False))
        yield _written(place / "scatter_data.json", json.dumps([row(habits) for habits in own]))
        for habits in own:
            name = f"L{habits.head.layer}H{habits.head.head}.json"
            yield _written(place / "heads" / name, json.dumps(in_full(habits), ensure_ascii=False))


def row(habits: HeadHabits) -> dict[str, object]:
    """One head: its place, what it does most often beyond chance, what speaks against that, and all shares by kind
    (``share_previous``, ``chance_previous``) and by strength (``strength_0.9``: rows whose strongest weight is ≥ 0.9).
    """
    main, against = habits.main, habits.against
    return {
        **habits.head._asdict(),
        "rows": habits.n_rows,
        "sentences": habits.n_sentences,
        "habit": main.kind,
        "share": main.share,
        "chance": main.chance,
        "share_in_half_0": main.halves[0],
        "share_in_half_1": main.halves[1],
        "stable": habits.is_stable,
        "otherwise": against.kind if against else "",
        "share_otherwise": against.share if against else 0.0,
        **{f"mean_{name}": mean for name, mean in habits.means.items()},
        **{f"largest_{name}": intervals[-1].high for name, intervals in habits.intervals.items() if name != "weight"},
        **{f"share_{habit.kind}": habit.share for habit in habits.habits},
        **{f"chance_{habit.kind}": habit.chance for habit in habits.habits},
        **{f"strength_{interval.low:.1f}": interval.share for interval in habits.intervals["weight"]},
    }


def in_full(habits: HeadHabits) -> dict[str, object]:
    """``row`` with the examples of every kind of place and of every interval of every measure."""
    return {
        **row(habits),
        "kinds": [
            {"kind": habit.kind, "share": habit.share, "chance": habit.chance, "examples": _examples(habit.examples)}
            for habit in habits.habits
        ],
        "intervals": {
            name: [
                {"low": one.low, "high": one.high, "share": one.share, "rare": one.is_rare,
                 "examples": _examples(one.examples)}
                for one in intervals
            ]
            for name, intervals in habits.intervals.items()
        },
    }  # fmt: skip


def _examples(examples: Sequence[Example]) -> list[dict[str, object]]:
    """The sentence's number, its tokens (of cross-attention the answer's, and the source's as "read"), the positions of
    the one that looks and the one that is looked at, and the value."""
    return [
        {
            "sentence": one.sentence,
            "tokens": one.asked.displays,
            **({} if one.read is one.asked else {"read": one.read.displays}),
            "query": one.query,
            "key": one.key,
            "value": one.value,
        }
        for one in examples
    ]


def _written(path: Path, text: str) -> Path:
    write_text(path, text)
    return path
