"""Embeddings: the rows of E that this sentence fetches, what lies near them, and how training moves them."""

import streamlit as st

from charts.toolkit.numbers import whole
from transformer.embedding import Embedding
from transformer.layers.embedding_space import analogy, nearest_rows, principal_components
from transformer.layers.gradient_step import training_step
from ui.lab.training_step import one_training_step
from ui.shell import choice
from ui.shell.choice import chosen_section
from ui.shell.page import page
from ui.show.figures import show_figure, show_snippet, show_source
from ui.words.texts import as_plain
from views.embeddings import embedding_sections
from views.embeddings.embedding_row_figures import embedding_rows
from views.embeddings.embedding_sections import embedding_table
from views.embeddings.patch_embedding import patch_embedding

SECTIONS = {
    "lookup": embedding_sections.lookup,
    "neighbours": embedding_sections.neighbours,
    "map": embedding_sections.map_of_vocabulary,
    "analogies": embedding_sections.analogies,
    "training": one_training_step,
}

with page("embeddings", needs=("token",)) as p:
    if p.reads_pictures:
        patch_embedding(p)
        p.finish()
    tokens = p.trace.tokens(p.focus.stack)
    table = embedding_table(p.checkpoint, p.focus.stack)
    embedding = getattr(p.checkpoint.model, p.focus.stack).embedding
    vocabulary, width = table.shape
    token = tokens[p.focus.token]
    st.markdown(p.text["first"].format(token=as_plain(token.display), id=token.id, width=width))
    show_figure(
        embedding_rows(table[list(tokens.ids)], tokens=tokens, vocabulary_size=vocabulary, followed=p.focus.token),
        name="embedding-rows",
        caption=p.text["rows_caption" if embedding.scale != 1 else "rows_caption_unscaled"].format(
            vocabulary=whole(vocabulary), width=width
        ),
    )
    if choice.toggle(p.text["window"], key="embeddings window"):
        embedding_sections.neighbouring_rows(p)
    SECTIONS[chosen_section(p.text, list(SECTIONS), key="embeddings section")](p)
    show_source(Embedding, nearest_rows, analogy, principal_components, training_step)
    show_snippet(
        "embeddings",
        p.preamble
        + "\nimport torch\nfrom transformer.layers.embedding_space import nearest_rows\n\n"
        + f"embedding = checkpoint.model.{p.focus.stack}.embedding\n"
        + "E = embedding.table.weight.detach()\n"
        + f"id = trace.tokens({p.focus.stack!r})[{p.focus.token}].id\n"
        + "one_hot = torch.zeros(len(E))\none_hot[id] = 1.0\n"
        + "assert torch.equal(one_hot @ E, E[id])\n"
        + f"recorded = trace.values('{p.focus.stack}.embedding.token')[{p.focus.token}]\n"
        + "print((E[id] * embedding.scale - torch.tensor(recorded)).abs().max())\n"
        + "for neighbour in nearest_rows(E.numpy(), E[id].numpy(), excluded={id}):\n"
        + "    print(checkpoint.tokenizer.display(neighbour.id), neighbour.similarity)\n",
    )
