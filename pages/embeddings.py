"""Embeddings: the rows of E that this sentence looks up, their neighbours, and their training."""

from transformer.embedding import Embedding
from transformer.layers.embedding_space import analogy, nearest_rows, principal_components
from transformer.layers.gradient_step import training_step
from ui.lab.training_step import one_training_step
from ui.page.page import Page, page
from ui.shell.choice import chosen_section
from ui.show.figures import show_source
from views.embeddings import embedding_sections
from views.embeddings.embeddings_view_model import embeddings_view_model
from views.embeddings.patch_embedding import patch_embedding
from views.view_models import second_token

SECTIONS = {
    "lookup": embedding_sections.lookup,
    "neighbours": embedding_sections.neighbours,
    "map": embedding_sections.map_of_vocabulary,
    "analogies": embedding_sections.analogies,
    "training": lambda p, _: one_training_step(p),
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
        patch_embedding(p)
        p.finish()
    view_model = embeddings_view_model(p.trace, stack=p.focus.stack, token=p.focus.token)
    embedding_sections.fetched_rows(p, view_model)
    SECTIONS[chosen_section(p.text, list(SECTIONS), key="embeddings section")](p, view_model)
    show_source(Embedding, nearest_rows, analogy, principal_components, training_step)
    embedding_sections.lookup_snippet(p, view_model)
