"""What stands for no text: tokens that were added to a sentence, characters without an entry, special tokens."""

import pandas as pd
import streamlit as st

from transformer.text.message import N_
from ui.shell import choice
from ui.shell.page import Page
from ui.show.chips import Chip, ChipRow, chips
from ui.show.figures import show_table
from ui.words.texts import as_plain, counted, in_code
from views.tokens.tokenization import kind_of, prompt_tokens, typed_tokens

_ROLES = ("pad", "start", "end", "mask")


def added_tokens(p: Page) -> str:
    """Which tokens stand around the text that nobody typed: a missing beginning is seen here."""
    tokens = list(prompt_tokens(p))
    ours = [token.index for token in typed_tokens(p)]
    if len(ours) < len(tokens):
        before, after = min(ours), len(tokens) - 1 - max(ours)
        return p.text["added_chat"].format(before=counted(before, "token"), after=counted(after, "token"))
    typed = [index for index, token in enumerate(tokens) if not token.special or token.role == "mask"]
    first, last = (typed[0], typed[-1]) if typed else (len(tokens), len(tokens))
    around = {"added_before": tokens[:first], "added_after": tokens[last + 1 :]}
    said = [
        p.text[where].format(tokens=", ".join(f"`{in_code(token.display)}` (id {token.id})" for token in found))
        for where, found in around.items()
        if found
    ]
    return p.text["added"].format(what=", ".join(said)) if said else p.text["added_none"]


def odd_character(p: Page) -> None:
    """What becomes of a character that the vocabulary may not have."""
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
            count=f"{counted(len(raw), 'byte')} ({raw.hex(' ').upper()})",
            space=text["space_in_front"] if tokenizer.space_in_front else "",
            back=as_plain(back) or text["nothing"],
        )
    )


def special_tokens(p: Page) -> None:
    """The special tokens with a job, and the others that this sentence has."""
    tokenizer, text = p.checkpoint.tokenizer, p.text
    special = tokenizer.special
    read = [token.id for stack in p.trace.stacks for token in p.trace.tokens(stack)]
    jobs = {role: getattr(special, role) for role in _ROLES}
    ids = list(dict.fromkeys([id for id in jobs.values() if id is not None]))
    ids += sorted({id for id in read if special.role(id) == "other"} - set(ids))
    if not ids:
        st.markdown(text["special_none"])
        return
    example = next(id for id in (special.end, special.start, *ids) if id is not None)
    as_text = tokenizer.encode(tokenizer.display(example))
    sentence = text["special_text"].format(
        name=in_code(tokenizer.display(example)),
        typed=counted(len(as_text), "token"),
        ids=", ".join(map(str, as_text)),
        id=example,
    )
    config = p.checkpoint.config
    blanks = special.mask is not None and not config.has_decoder and not config.n_classes
    st.markdown(f"{sentence} {text['special_mask']}" if blanks else sentence)
    uses = [[text["special_uses"][role] for role in _ROLES if jobs[role] == id] for id in ids]
    table = {
        N_("token"): [tokenizer.display(id) for id in ids],
        N_("id"): ids,
        text["in_sentence"]: [read.count(id) for id in ids],
        N_("what for"): ["; ".join(use) or text["special_uses"]["other"] for use in uses],
    }
    show_table(pd.DataFrame(table), name="special-tokens")
