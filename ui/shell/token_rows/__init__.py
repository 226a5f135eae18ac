"""The component that draws rows of tokens: small buttons, cards, or the words of a coloured sentence.

``token_rows.js`` says what its data hold. A click sends ``sends`` of the token as ``chosen``.
"""

from pathlib import Path

from ui.shell.events import component

token_rows = component("token_rows", Path(__file__).with_name("token_rows.bundle.js"))
