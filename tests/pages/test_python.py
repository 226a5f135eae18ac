"""The Python of every view, as a reader copies it, computes what the page shows.

By day that of some views. ``tests/ui/test_kit.py`` tests how it is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
import torch

from tests.pages.fuzzing import SENTENCE
from tests.pages.page_views import VIEWS
from tests.pages.test_shared_links import MORE_VIEWS
from tests.pages.test_shared_links import VIEWS as LINKED
from ui.page.kit import Kit

NO_PYTHON = ("lessons", "by_hand")
LONG = {"training section": "now"}  # trains a model; tests/pages/test_training.py runs it with a short training


def cases() -> Iterator[object]:
    """Yield every view with every kind of model that it is about."""
    views = [(view.page, dict(view.address), [kind for kind in view.kinds if "tiny" in kind]) for view in VIEWS]
    views += [
        (page, address, [str(address.get("checkpoint", "tiny-translator"))])
        for more in (LINKED, MORE_VIEWS)
        for page, addresses in more.items()
        for address in addresses
    ]
    views = [view for view in views if view[0] not in NO_PYTHON and view[1] != LONG]
    for page, address, kinds in views:
        for kind in kinds:
            name = " ".join([page, *map(str, address.values()), kind])
            yield pytest.param(page, {**address, "checkpoint": kind}, id=name)


def are_equal(one: object, other: object) -> bool:
    """Return whether two results hold the same, numbers but for rounding; a model is not looked into."""
    if isinstance(one, np.ndarray | torch.Tensor | float | np.number):
        return np.allclose(np.asarray(one), np.asarray(other), rtol=1e-4, atol=1e-6, equal_nan=True)
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(are_equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(are_equal, one, other))
    if is_dataclass(one):
        return all(are_equal(getattr(one, each.name), getattr(other, each.name)) for each in fields(one))
    return type(one) is type(other) and (type(one).__eq__ is object.__eq__ or one == other)


@pytest.mark.slow
@pytest.mark.sample(of=8)
@pytest.mark.parametrize(("page", "address"), list(cases()))
def test_the_python_of_a_view_computes_what_the_page_shows(open_app, run_snippet, monkeypatch, page, address) -> None:
    shown, know, names = {}, Kit._know, {}
    monkeypatch.setattr(Kit, "_know", lambda self, one: shown.update({one.python: one.value}) or know(self, one))
    app = open_app(page, **{"sentence": SENTENCE, **address})
    assert not app.exception and shown
    run_snippet(app, names)
    differ = [python for python, value in shown.items() if not are_equal(value, eval(python, names))]
    assert not differ
