"""The drawings of ``charts.notebook``, in a checkout and where the app is installed.

Whoever installs the program has a view draw itself in a notebook without an import: this module is the entry point
``transformer.drawings`` (pyproject.toml), for which a view looks when it is shown.
"""

import sys

from glassformer import APP

sys.path.insert(0, str(APP))  # only for a moment: an installation adds no packages called ``charts`` or ``ui``
try:
    from charts.notebook import *  # noqa: F403
finally:
    sys.path.remove(str(APP))
