"""``python -m transformer habits``: what every head does on the whole, as a table to go on with."""

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from transformer.text.sentence_files import SHIPPED

if TYPE_CHECKING:
    from transformer.explanation.head_habits import HeadHabits


def add_habits(commands: argparse._SubParsersAction) -> None:
    habits = commands.add_parser("habits", help="where the strongest weights of every head fall, as CSV or JSON")
    habits.add_argument("--checkpoint", required=True, metavar="DIR")
    habits.add_argument(
        "--sentences", default=str(SHIPPED), metavar="FILE", help="one a line (default: those that ship with this)"
    )
    habits.add_argument("--limit", type=int, metavar="N", help="read the first N sentences only")
    habits.add_argument("--json", action="store_true", help="print JSON, examples included, in place of CSV")
    habits.set_defaults(command=_habits)


def _habits(options: argparse.Namespace) -> int:
    from transformer.explanation.head_habits import head_habits
    from transformer.files.checkpoints import load
    from transformer.roles.role_tables import first_sentences

    checkpoint, sentences = load(options.checkpoint), first_sentences(options.sentences, options.limit)
    found = head_habits(checkpoint, sentences)
    if options.json:
        heads = [{**row(habits), "examples": _examples(habits)} for habits in found.values()]
        print(json.dumps({"checkpoint": checkpoint.name, "fingerprint": checkpoint.fingerprint, "heads": heads}))
        return 0
    rows = [row(habits) for habits in found.values()]
    writer = csv.DictWriter(sys.stdout, fieldnames=_columns(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return 0


def row(habits: "HeadHabits") -> dict[str, object]:
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
        **{f"share_{habit.kind}": habit.share for habit in habits.habits},
        **{f"chance_{habit.kind}": habit.chance for habit in habits.habits},
        **{f"strength_{interval.low:.1f}": interval.share for interval in habits.intervals["weight"]},
    }


def _columns(rows: Iterable[Mapping[str, object]]) -> list[str]:
    """Those of all rows: cross-attention has other kinds of place."""
    return list(dict.fromkeys(column for one in rows for column in one))


def _examples(habits: "HeadHabits") -> dict[str, list[dict[str, object]]]:
    """By kind: the sentence's number, the tokens that look and are looked at, with their positions, and the weight."""
    return {
        habit.kind: [
            {
                "sentence": one.sentence,
                "query": one.query,
                "key": one.key,
                "query_token": one.asked[one.query].display,
                "key_token": one.read[one.key].display,
                "weight": one.value,
            }
            for one in habit.examples
        ]
        for habit in habits.habits
    }
