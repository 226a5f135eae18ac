"""The order of the heads on the Heads page, and the Python that reproduces what it says of one of them."""

from transformer.config import ModelConfig
from transformer.text.sentence_files import SHIPPED
from ui.lab.head_table import CORPUS_ORDERS, ORDERS
from ui.shell.page import Page
from ui.shell.presentation.presenter import labels
from ui.shell.selectors import chosen_option
from ui.words.texts import PageText
from views.heads.corpus import Corpus


def chosen_order(text: PageText, config: ModelConfig, *, many: bool) -> str:
    """How the tiles are sorted; each list of orders has a widget of its own, so that a choice always is one of it.

    The longer ones are lists that open: as a row of buttons they would push the maps' legend out of sight.
    """
    orders, key, shape = ORDERS, "heads_order", {}
    if many:
        induction = config.kind == "decoder-only"
        orders = (*CORPUS_ORDERS, "induction") if induction else CORPUS_ORDERS
        key = "heads_corpus_order_induction" if induction else "heads_corpus_order"
        shape = {"in_list": True, "width": 220}
    explained = text["order_help_corpus" if many else "order_help"]
    shape |= {"help": explained, "label_visibility": labels()}
    return chosen_option(text, "order", orders, key=key, first="layer", **shape)


def snippet(p: Page, corpus: Corpus | None) -> str:
    """Roles of the focused head in this sentence, or over the sentences of ``corpus``."""
    focus = p.focus
    if corpus is None:
        return (
            f"{p.preamble}\nfrom transformer.analysis.heads.head_roles import head_roles\n\n"
            f'view = trace.attention("{focus.stack}", layer={focus.layer}, kind="{focus.kind}")\n'
            f"role = head_roles(view)[{focus.head}]\nprint(role.role, role.score)\nprint(role.scores)\n"
        )
    return (
        "import transformer\nfrom transformer.analysis.heads.corpus_roles import corpus_roles\n"
        "from transformer.text.sentence_files import read_sentences\n\n"
        f"{p.load_line}"
        f"sentences = {_sentences(corpus)}\n"
        f"found = corpus_roles(checkpoint, sentences)\n"
        f'head = found.head("{focus.stack}", "{focus.kind}", layer={focus.layer}, head={focus.head})\n'
        "print(head.role, head.consistency, head.n_sentences)\nprint(head.shares)\nprint(head.scores)\n"
    )


def _sentences(corpus: Corpus) -> str:
    if not corpus.sentences:
        return f"read_sentences({corpus.name!r})  # the file that they came from"
    if corpus.name == SHIPPED.name:
        return f"read_sentences()[:{len(corpus.sentences)}]  # those that ship with it"
    return "[\n" + "".join(f"    {sentence!r},\n" for sentence in corpus.sentences) + "]"
