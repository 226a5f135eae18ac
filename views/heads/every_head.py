"""Every head of the model in one picture: all kinds of attention, all layers, each with its role."""

from charts.canvas.attention_overview import attention_overview
from charts.canvas.choices import AnyHead
from transformer.heads.head_roles import sentence_roles
from ui.lab.head_table import captions
from ui.shell.fitting import attention_kinds
from ui.shell.page import Page
from ui.show.drawings import show_overview
from views.heads.corpus import Corpus
from views.heads.corpus_role_table import corpus_captions
from views.heads.groups import heads_of_one_key
from views.heads.named import with_a_job


def show_every_head(p: Page, *, corpus: Corpus | None, stretch: bool) -> None:
    """The roles below the maps are those over the sentences of ``corpus``, else those in this sentence; a head without
    one is pale. A click on a head makes all pages look at it."""
    focus, trace = p.focus, p.trace
    kinds = attention_kinds(p.checkpoint.config)
    groups = [[trace.attention(stack, layer, kind) for layer in range(trace.n_layers(stack))] for stack, kind in kinds]
    named, clear = [], []
    for (stack, kind), views in zip(kinds, groups, strict=True):
        roles = corpus.roles.of(stack, kind) if corpus else [role for view in views for role in sentence_roles(view)]
        jobs = [(head.layer, head.head) for head in with_a_job(roles)]
        short = corpus_captions(roles, p.text) if corpus else captions(roles, p.text)
        named.append({place: short[place] for place in jobs})
        clear.append(jobs)
    here = AnyHead(focus.stack, focus.kind, focus.layer, focus.head)
    focused = trace.attention(focus.stack, focus.layer, focus.kind)
    figure = attention_overview(
        groups,
        selected=here,
        captions=named,
        clear=clear,
        stretch=stretch,
        heads_a_key=len(heads_of_one_key(p, focused)),
    )
    show_overview(figure, key="heads of every kind")
