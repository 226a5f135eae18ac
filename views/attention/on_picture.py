"""The focused row where its keys stand: on the picture, for every head of the layer."""

import numpy as np

from charts.toolkit.style import three_digits
from charts.toolkit.words import _
from transformer.pictures.picture_text import levels_in
from transformer.runs.attention_view import AttentionView
from ui.shell.page import Page
from ui.show.figures import show_figure
from ui.words.texts import as_plain
from views.attention.attention_row_figures import row_on_picture


def on_picture(p: Page, view: AttentionView, *, stretch: bool) -> None:
    """One picture a head, with what the row gives to each patch; what goes to the class token is said above."""
    row, config = p.focus.token, p.checkpoint.config
    per_row = config.picture_size // config.patch_size
    weights = view.weights[:, row]
    patches = [token.index for token in view.key if not token.special]
    levels = np.array(levels_in(p.checkpoint.tokenizer.decode(view.key.ids), config))
    special = weights.sum(axis=-1) - weights[:, patches].sum(axis=-1)
    names = [
        _(
            "head {head}: {share} goes to {token}",
            head=head,
            share=three_digits(float(share)),
            token=view.key[0].display,
        )
        for head, share in enumerate(special)
    ]
    show_figure(
        row_on_picture(
            weights[:, patches].reshape(-1, per_row, per_row),
            ink=levels.reshape(config.picture_size, -1) / (config.n_levels - 1),
            names=names,
            labels=[view.key.labels[place] for place in patches],
            stretch=stretch,
        ),
        name="row-on-picture",
        caption=p.text["picture_caption"].format(row=as_plain(view.query.labels[row]), layer=p.focus.layer),
        alt=p.text["picture_alt"],
    )
