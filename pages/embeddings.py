"""Embeddings: the rows of E that this sentence looks up, their neighbours, and their training."""

from transformer.embedding import Embedding
from ui.page.page import Page, page
from views.embeddings import embeddings_sections as sections
from views.opening_tokens import second_token

SECTIONS = {
    "lookup": sections.one_lookup,
    "neighbours": sections.neighbours,
    "map": sections.map_of_vocabulary,
    "analogies": sections.analogies,
    "training": sections.one_training_step,
}


def begins(p: Page) -> tuple[str, int]:
    """Begin at the token after the first, or at the image patch with most ink."""
    stack = p.trace.stacks[0]
    if p.reads_files:
        return stack, 0
    if p.reads_pictures:
        return stack, max(p.trace.tokens(stack), key=lambda token: sum(token.pixels)).index
    return stack, second_token(p.trace, stack)


with page("embeddings", needs=("token",), begins=begins) as p:
    if p.reads_pictures:
        sections.patches(p)
        p.finish()
    sections.fetched_rows(p)
    offered = [name for name in SECTIONS if name != "training" or not p.checkpoint.config.encodes_sentences]
    SECTIONS[p.option("section", offered, key="embeddings section", wrap=True)](p)
    p.code(Embedding)
