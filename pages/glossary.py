"""Glossary: what does this term mean?"""

from ui.shell.page import page
from views.glossary.entries import chosen_terms, show_terms

with page("glossary", strip=False) as p:
    show_terms(p, chosen_terms(p))
