"""Record golden values: ``python tests/golden/record.py en-fr gpt-en``; without a name, of all models."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.golden import readers
from tests.golden.store import Recorded, write
from tests.golden.views import MODELS, Model, views


def record(model: Model) -> Iterator[Recorded]:
    """Yield what every view of a model shows, and what the library answers about it."""
    for name, (text, other) in model.inputs.items():
        yield from _record_pages(model, name, text, other)
        for question in readers.QUESTIONS:
            began = time.process_time()
            values = readers.values_of_question(question, model.name, text, other)
            address = {"question": question, "model": model.name, "sentence": text, "other": other}
            yield Recorded(f"{model.name} / {name} / {question}", "", address, _since(began), values)


def _record_pages(model: Model, name: str, text: str, other: str) -> Iterator[Recorded]:
    known = set()
    for page, view, asked in views(model, text, other):
        began = time.process_time()
        address = readers.full_address(readers.open_view(page, asked), page)
        first = _since(began)
        if (same := json.dumps([page, address], sort_keys=True)) in known:  # the model lacks what was asked for
            continue
        known.add(same)
        began = time.process_time()
        values = readers.values_of_page(readers.open_view(page, address))
        seconds = max(first, _since(began))  # the first opening computes what the second one finds computed
        yield Recorded(f"{model.name} / {name} / {page} / {view}", page, address, seconds, values)


def _since(began: float) -> float:
    return round(time.process_time() - began, 3)


def main(names: list[str]) -> None:
    """Record these models."""
    for name in names or MODELS:
        recorded = []
        for one in record(MODELS[name]):
            if one.values:
                recorded.append(one)
            print(f"{one.seconds:7.2f} s {len(one.values):4} {one.name}", flush=True)
        file = write(name, readers.about(name), recorded)
        print(f"{file}: {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
