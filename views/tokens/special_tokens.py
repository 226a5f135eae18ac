"""Tokens without text: those added to a sentence, characters without an entry, special tokens."""

import pandas as pd
import streamlit as st

from ui.page.page import Page
from ui.shell import choice
from ui.show.chips import Chip, ChipRow, chips
from ui.show.figures import show_table
from ui.words.texts import PageText, as_plain, count_text, in_code
from views.tokens.tokenization import kind_of
from views.tokens.tokens_view_model import TokensViewModel


def added_tokens(view_model: TokensViewModel, text: PageText) -> str:
    """State which special tokens were added around the text; a missing start token is visible here."""
    if view_model.framed is not None:
        before, after = view_model.framed
        return text["added_chat"].format(before=count_text(before, "token"), after=count_text(after, "token"))
    before, after = view_model.added
    places = {"added_before": before, "added_between": view_model.added_between, "added_after": after}
    said = [
        text[where].format(tokens=", ".join(f"`{in_code(token.display)}` (id {token.id})" for token in found))
        for where, found in places.items()
        if found
    ]
    if not said:
        return text["added_none"]
    return text["added"].format(what=", ".join(said))


def odd_character(p: Page) -> None:
    """State how the tokenizer treats a character that the vocabulary may lack."""
    tokenizer, text = p.checkpoint.tokenizer, p.text
    typed = choice.text(text["character"], default="😀", key="character", help=text["character_help"], width=200)
    character = typed.strip()[:1]
    if not character:
        return
    sequence = tokenizer.sequence(tokenizer.encode(character))
    raw = character.encode("utf-8", errors="replace")
    chips(
        [ChipRow("", tuple(Chip(token.display, str(token.id), kind_of(token)) for token in sequence))],
        key="character tokens",
    )
    back = tokenizer.decode(sequence.ids)
    lost = back != character.encode("utf-8", errors="replace").decode("utf-8", errors="replace")
    st.markdown(
        text["lost_text" if lost else "unknown_text"].format(
            character=as_plain(character),
            count=f"{count_text(len(raw), 'byte')} ({raw.hex(' ').upper()})",
            space=text["space_in_front"] if tokenizer.space_in_front else "",
            back=as_plain(back) or text["nothing"],
        )
    )


def special_tokens(p: Page, view_model: TokensViewModel) -> None:
    """List the special tokens with a role, and the others that this sentence has."""
    tokenizer, text, ids = p.checkpoint.tokenizer, p.text, view_model.special_ids
    special = tokenizer.special
    if not ids:
        st.markdown(text["special_none"])
        return
    example = next(id for id in (special.end, special.start, *ids) if id is not None)
    as_text = tokenizer.encode(tokenizer.display(example))
    sentence = text["special_text"].format(
        name=in_code(tokenizer.display(example)),
        typed=count_text(len(as_text), "token"),
        ids=", ".join(map(str, as_text)),
        id=example,
    )
    config = p.checkpoint.config
    blanks = special.mask is not None and not config.has_decoder and not config.n_classes
    st.markdown(f"{sentence} {text['special_mask']}" if blanks else sentence)
    uses = [[text["special_uses"][role] for role in view_model.roles_of(id)] for id in ids]
    table = {
        "token": [tokenizer.display(id) for id in ids],
        "id": ids,
        text["in_sentence"]: [view_model.all_ids.count(id) for id in ids],
        "what for": ["; ".join(use) or text["special_uses"]["other"] for use in uses],
    }
    show_table(pd.DataFrame(table), name="special-tokens")
