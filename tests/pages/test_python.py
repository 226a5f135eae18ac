"""The Python of every view runs as a reader copies it, for each kind of model; by day some of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.pages.fuzzing import SENTENCE
from tests.pages.page_views import VIEWS
from tests.pages.test_shared_links import MORE_VIEWS
from tests.pages.test_shared_links import VIEWS as LINKED

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


@pytest.mark.slow
@pytest.mark.sample(of=5)
@pytest.mark.parametrize(("page", "address"), list(cases()))
def test_the_python_of_a_view_runs(open_app, run_snippet, page, address) -> None:
    app = open_app(page, **{"sentence": SENTENCE, **address})
    assert not app.exception
    run_snippet(app)
