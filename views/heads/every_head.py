"""Every head of the model in one picture: all kinds of attention, all layers, each with its role."""

from charts.canvas.attention_overview import attention_overview
from charts.canvas.choices import AnyHead
from transformer.analysis.heads.head_roles import head_roles
from ui.lab.head_table import captions
from ui.shell.focus import attention_kinds
from ui.shell.page import Page
from ui.show.canvas import show_overview
from views.heads.corpus import Corpus
from views.heads.corpus_role_table import corpus_captions
from views.heads.pruned import pruned_captions, pruned_places


def show_every_head(p: Page, *, corpus: Corpus | None, stretch: bool) -> None:
    """The roles below the maps are those over the sentences of ``corpus``, else those in this sentence. A click on a
    head makes all pages look at it."""
    focus, trace = p.focus, p.trace
    kinds = attention_kinds(p.checkpoint.config)
    groups = [[trace.attention(stack, layer, kind) for layer in range(trace.n_layers(stack))] for stack, kind in kinds]
    if corpus:
        named = [corpus_captions(corpus.roles.of(stack, kind), p.text) for stack, kind in kinds]
    else:
        named = [captions([role for view in views for role in head_roles(view)], p.text) for views in groups]
    named = [
        found | pruned_captions(pruned_places(p, views), p.text) for found, views in zip(named, groups, strict=True)
    ]
    here = AnyHead(focus.stack, focus.kind, focus.layer, focus.head)
    figure = attention_overview(groups, selected=here, captions=named, stretch=stretch)
    chosen = show_overview(figure, key="heads of every kind")
    if chosen is not None and chosen != here:
        p.set_focus(stack=chosen.stack, kind=chosen.attention, layer=chosen.layer, head=chosen.head)
