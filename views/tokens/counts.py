"""How many tokens the text has, and the Python code that splits it."""

import streamlit as st

from charts.toolkit.numbers import whole
from charts.toolkit.style import three_digits
from transformer.text.tokenizer import Tokenizer
from ui.page.page import Page
from ui.show.figures import show_formula
from ui.words.texts import PageText, count_text, in_code
from views.tokens.special_tokens import added_tokens
from views.tokens.tokens_view_model import TokensViewModel


def show_counts(view_model: TokensViewModel, text: PageText) -> None:
    """Show the ids that the model receives, and the number of tokens that the text needs."""
    tokenizer, read = view_model.checkpoint.tokenizer, view_model.tokens
    ids = [str(token.id) for token in read]
    if len(ids) > 12:
        ids = [*ids[:8], r"\dots", ids[-1]]
    listed, size = r",\ ".join(ids), tokenizer.vocabulary_size - 1
    show_formula(rf"\text{{ids}} = ({listed}) \in \{{0, \dots, {size}\}}^{{{len(read)}}}")
    said = [added_tokens(view_model, text)]
    if written := view_model.n_written:
        key = "written_given" if view_model.trace.forced else "written"
        said.append(text[key].format(tokens=count_text(written, "token")))
    if target := target_frame(view_model, text):
        said.append(target)
    st.markdown(" ".join(said))
    n_text, typed = view_model.n_typed, view_model.typed_text
    n_merges = len(tokenizer.merges)
    how = text["how"][tokenizer.kind].format(merges=whole(n_merges))
    st.markdown(
        text["counts" if type(tokenizer) is Tokenizer else "counts_other"].format(
            tokens=n_text,
            characters=len(typed),
            bytes=len(typed.encode("utf-8", errors="replace")),
            ratio=three_digits(len(typed) / n_text) if n_text else "0",
            vocabulary=whole(tokenizer.vocabulary_size),
            special=len(tokenizer.special),
            merges=whole(n_merges),
            offset=tokenizer.vocabulary_size - n_merges,
            how=how,
        )
    )


def target_frame(view_model: TokensViewModel, text: PageText) -> str:
    """Say where the start token of a target comes from, and what its end token is; "" without an encoder."""
    trace = view_model.trace
    if trace.source is None or trace.target is None:
        return ""
    said, following = text["target_start"].format(start=in_code(trace.target[0].display)), trace.prediction
    if trace.forced or following is None or following[-1].id != view_model.checkpoint.special.end:
        return said
    return f"{said} {text['target_end'].format(end=in_code(following[-1].display))}"


def snippet_of(p: Page) -> str:
    """Return Python code that splits the same sentence, if possible step by step."""
    sentence, merged = p.sentence, p.checkpoint.tokenizer.kind == "BPE"
    lines = [
        "tokenizer = checkpoint.tokenizer",
        f"ids = tokenizer.encode({sentence!r})",
        "print(ids, [tokenizer.display(id) for id in ids], tokenizer.decode(ids))",
    ]
    if merged:
        lines += [
            f"for word in tokenizer.words({sentence!r}):",
            "    print([step.pieces for step in merge_steps(tokenizer, word)])",
        ]
    imports = "from transformer.text.byte_pair_merges import merge_steps\n\n" if merged else ""
    return p.preamble + "\n" + imports + "\n".join(lines) + "\n"
