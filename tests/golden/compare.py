"""Compare the program with the golden values; the exit status is 1 if something differs that may not.

python tests/golden/compare.py                 a sample of half a minute, drawn by the date
python tests/golden/compare.py --all           everything
python tests/golden/compare.py --only masks    every view and question with this in its name
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.golden import readers
from tests.golden.store import FOLDER, Recorded, Value, difference, read

SAMPLE = 15.0  # seconds of the processor when the values were recorded, after which no more is drawn
MOST_SHOWN = 60


def on_purpose(file: str) -> re.Pattern[str]:
    """Return the patterns of a file as one; each line is a pattern, a tab, and a reason."""
    patterns = []
    for line in (FOLDER / file).read_text(encoding="utf-8").splitlines():
        pattern, _, reason = line.partition("\t")
        if line and not line.startswith("#"):
            if not reason.strip():
                raise SystemExit(f"{file}: {line!r} has no reason; write the pattern, a tab, and the reason")
            patterns.append(f"(?:{pattern})")
    return re.compile("|".join(patterns) or "(?!)")


def sample(recorded: list[Recorded], seed: int) -> list[Recorded]:
    """Draw about ``SAMPLE`` seconds of what was recorded, in an order in which each model is loaded once."""
    seconds = 0.0
    chosen = []
    for place in random.Random(seed).sample(range(len(recorded)), len(recorded)):
        if seconds + recorded[place].seconds <= SAMPLE:
            seconds += recorded[place].seconds
            chosen.append(place)
    return [recorded[place] for place in sorted(chosen)]


def compare(old: Recorded) -> list[tuple[str, str]]:
    """Compute a view or a question anew; return every key with what differs, or "" if nothing does."""
    why = "missing"
    try:
        now = _compute(old)
    except Exception as error:  # whatever it is, all values of this view are missing
        now, why = {}, f"missing, because of {type(error).__name__}: {' '.join(str(error).split())[:300]}"
    now = {f"{old.name} / {name}": value for name, value in now.items()}
    for pattern, recorded_as in readers.RENAMED:
        now = {re.sub(pattern, recorded_as, key): value for key, value in now.items()}
    before = {f"{old.name} / {name}": value for name, value in old.values.items()}
    told = {key: difference(value, now[key]) if key in now else why for key, value in before.items()}
    return [*told.items(), *((key, "new") for key in now.keys() - before.keys())]


def _compute(old: Recorded) -> dict[str, Value]:
    if not old.page:
        return readers.values_of_question(**old.address)
    found: dict[str, Value] = {}
    for page, address in readers.openings(old.page, old.address):
        found = {**readers.values_of_page(readers.open_view(page, address)), **found}
    return found


def main() -> int:
    """Compare, and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="compare everything")
    parser.add_argument("--only", default="", metavar="PATTERN", help="compare everything with this in its name")
    parser.add_argument("--seed", type=int, default=int(f"{datetime.now(UTC):%Y%m%d}"), help="draw this sample")
    asked = parser.parse_args()
    began = time.monotonic()
    found = {file.stem: read(file.stem) for file in sorted((FOLDER / "values").glob("*.npz"))}
    chosen = [one for _, recorded in found.values() for one in recorded if re.search(asked.only, one.name)]
    if not (asked.all or asked.only):
        chosen = sample(chosen, asked.seed)
        print(f"a sample of {len(chosen)} views and questions, drawn with --seed {asked.seed}")
    for model in dict.fromkeys(one.model for one in chosen):
        was, now = found[model][0], readers.about(model)
        if was["fingerprint"] != now["fingerprint"]:
            print(f"{model} is another checkpoint than the recorded one: {now['fingerprint'][:12]} for")
            print(f"{was['fingerprint'][:12]}. Record it anew, in a commit of its own: tests/golden/record.py {model}")
            return 1
    removed, changed, count = on_purpose("removed.txt"), on_purpose("changed.txt"), Counter()
    for one in chosen:
        for key, told in compare(one):
            missing = told.startswith("missing")
            if told in ("", "new"):
                count[told] += 1
            elif (removed if missing else changed).search(key):
                count["removed" if missing else "changed"] += 1
            else:
                count["failed"] += 1
                if count["failed"] <= MOST_SHOWN:
                    print(f"{key}: {told}", flush=True)
    print(
        f"{count['failed']} values differ. {count['']:,} of {len(chosen):,} views and questions are equal, "
        f"{count['removed']} are removed and {count['changed']} changed on purpose, {count['new']} are new "
        f"({time.monotonic() - began:.0f} s)."
    )
    return 1 if count["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
