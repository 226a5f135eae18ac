"""Everything Streamlit that several pages share. A page needs ``from ui import page`` and ``ui.show``."""

from ui.page import guard, page

__all__ = ["guard", "page"]
