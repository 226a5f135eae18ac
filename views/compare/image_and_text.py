"""An image beside a text in a model of two towers: which words and which patches make the cosine."""

from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

import transformer
from charts.canvas.value_map import value_map
from charts.toolkit.style import three_digits
from transformer.attribution.image_text_cosine import ImageTextCosine, TowerShares, image_text_cosine
from transformer.files.text_tower import open_text_tower
from ui.compute.store import store
from ui.shell import choice
from ui.shell.page import Page
from ui.shell.picture import picture_address
from ui.shell.presentation.presenter import labels
from ui.show.drawings import show_map
from ui.show.figures import show_figure, show_formula, show_snippet, show_source, show_table
from ui.words.catalogues import translate
from ui.words.texts import PageText, as_plain, label_in_words, model_sentences
from views.compare.picture_shares_figure import picture_shares


def image_and_text(p: Page) -> None:
    """Draw the choice of a text, the cosine, and the shares of patches and words in it."""
    text = p.text
    written = choice.text(
        text["caption"], model_sentences()["caption"], key="compare_caption", help=text["caption_help"], width=400,
        label_visibility=labels(),
    )  # fmt: skip
    try:
        texts = store.get(p.checkpoint, ("text tower",), partial(open_text_tower, p.checkpoint))
        compute = partial(image_text_cosine, p.checkpoint, texts, p.sentence, written)
        found = store.get(p.run, ("image and text", written), compute)
    except (transformer.InputError, transformer.CheckpointError) as error:
        st.warning(as_plain(translate(error)), icon=":material/edit:")
        return
    patches, words = _shares(found.image), _shares(found.text)
    st.markdown(
        text["two_towers"].format(
            cosine=three_digits(found.cosine),
            word=as_plain(label_in_words(found.text.trace.source.labels[max(words, key=words.__getitem__)])),
            patch=as_plain(label_in_words(found.image.trace.source.labels[max(patches, key=patches.__getitem__)])),
        )
    )
    left, right = st.columns(2)
    pooled = found.image.row is None
    with left:
        _draw_patches(p, found.image, patches)
    with right:
        _draw_words(text, found.text)
    show_table(shares_table(text, found), name="shares-of-the-cosine")
    show_formula(
        text["pooled_formula" if pooled else "two_towers_formula"],
        caption=text["pooled_caption" if pooled else "two_towers_caption"],
    )
    show_source(image_text_cosine)
    show_snippet(
        "image and text",
        p.preamble
        + "\nfrom transformer.attribution.image_text_cosine import image_text_cosine\n"
        + "from transformer.files.text_tower import open_text_tower\n\n"
        + f"found = image_text_cosine(checkpoint, open_text_tower(checkpoint), trace.sentence, {written!r})\n"
        + "print(found.cosine, found.image.by_position, found.text.by_position)\n",
    )


def _shares(tower: TowerShares) -> dict[int, float]:
    """Return the share of every patch or word, by its position."""
    return {token.index: float(tower.by_position[token.index]) for token in tower.trace.source if not token.special}


def _draw_patches(p: Page, tower: TowerShares, patches: dict[int, float]) -> None:
    across = p.checkpoint.tokenizer.per_row
    show_figure(
        picture_shares(
            np.reshape(list(patches.values()), (-1, across)),
            picture=picture_address(p.sentence, p.checkpoint.config),
            labels=[label_in_words(tower.trace.source.labels[place]) for place in patches],
        ),
        name="shares-of-patches",
        caption=p.text["patches_caption" if tower.row is not None else "patches_pooled"],
        alt=p.text["patches_alt"],
    )


def _draw_words(text: PageText, tower: TowerShares) -> None:
    read = slice(len(tower.trace.source) - tower.n_pads)
    show_map(
        value_map(
            tower.positions[:, read],
            row_labels=[text["layer"].format(layer=layer) for layer in range(len(tower.positions))],
            column_labels=list(tower.trace.source.labels)[read],
            row_title=text["layers_title"],
            column_title=text["words_title"],
            title=text["words_map"],
            value_name=text["cosine_value"],
            height=330,
        ),
        key="compare caption words",
    )
    st.caption(text["words_padded"].format(count=tower.n_pads) if tower.n_pads else text["words_caption"])


def shares_table(text: PageText, found: ImageTextCosine) -> pd.DataFrame:
    """Return the shares of both towers; each column adds up to the cosine."""
    columns = {}
    for name, tower in (("image", found.image), ("text", found.text)):
        special = [token.special for token in tower.trace.source]
        columns[text[f"tower_{name}"]] = [
            tower.by_position[~np.array(special)].sum(),
            tower.by_position[np.array(special)].sum(),
            tower.start,
            tower.feed_forward.sum(),
            tower.bias,
            tower.total,
        ]
    rows = [text[f"share_{name}"] for name in ("content", "special", "start", "feed_forward", "bias", "total")]
    return pd.DataFrame({text["share_of"]: rows, **columns})
