"""The sections of the Heads page: what all heads do, the selected one, a table, definitions."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import streamlit as st

from charts.canvas.attention_heads import HeadWords, attention_heads
from charts.canvas.attention_maps import predicted_rows
from charts.toolkit.numbers import number
from transformer.errors import CheckpointError
from transformer.files.layout import file_of_results
from transformer.heads import annotated_words, head_roles, induction, weight_patterns
from transformer.heads.head_roles import (
    GENERAL,
    MEASURES,
    NO_ROLE,
    RESTING,
    ROLES,
    CorpusRoles,
    HeadRole,
    corpus_roles,
    roles_in,
)
from transformer.heads.role_files import FILE, load_corpus_roles
from transformer.heads.weight_patterns import WINDOW
from transformer.runs.attention_view import AttentionView
from transformer.text.sentence_files import read_sentences
from ui.page.page import Page
from ui.shell.navigation import go_to
from ui.show.drawings import show_grid
from ui.words.texts import Marked, code, label_in_words, listed, problem_text
from views.heads.head_card import card

Place = tuple[int, int]  # layer, head

CONSTANTS = {  # thresholds of the library, as the definitions name them: ``{least_share}``
    name.lower(): value
    for module in (annotated_words, head_roles, induction, weight_patterns)
    for name, value in vars(module).items()
    if name.isupper()
}
BELOW = "head card"  # the container below the maps, which a lesson covers
COLOURS = (0, 1, 2, 3, 4, 6)  # of the theme's kinds of things; the selected head has the fifth
IDLE = (*RESTING, *NO_ROLE)  # patterns of heads that attend to fixed positions, or everywhere
MANY_TOKENS = 64  # with more tokens most weights are too small for the fixed scale
FIRST_MEASURES = ("entropy", "confidence", "sinks", "distance", "induction", "previous_random")  # next to the role
ORDERS = {  # of the small maps; the last two only over many sentences
    "layer": None,
    "role": lambda head: (head.role == "none", ("induction", *ROLES).index(head.role), -_or_zero(head.score)),
    "entropy": lambda head: _or_zero(head.scores["broad"]),
    "sinks": lambda head: -_or_zero(head.scores["sinks"]),
    "consistency": lambda head: (head.role == "none", -_or_zero(head.consistency)),
    "induction": lambda head: -_or_zero(head.scores.get("induction", 0.0)),
}


# ---- roles ----------------------------------------------------------------------------------------------------------


def roles_over_many(p: Page) -> CorpusRoles | None:
    """Return the roles saved with the checkpoint, or computed on request; ``None`` if there are none."""
    command = code(f"python -m transformer heads --checkpoint {p.checkpoint_place} --save")
    try:
        file = file_of_results(p.checkpoint.path, FILE)
        if (saved := p.calc(load_corpus_roles, p.checkpoint, name="saved", reads=file)) is not None:
            return saved
        p.say("missing", icon="info", small=True, command=command)
    except CheckpointError as error:
        p.say("stale", icon="info", small=True, problem=problem_text(error), command=command)
    if not p.toggle("compute", key="heads_compute"):
        return None
    imports = "from transformer.text.sentence_files import read_sentences"
    sentences = p.known(read_sentences(), "read_sentences()", imports=imports)
    return p.calc(corpus_roles, p.checkpoint, sentences, name="over_many", slow=True, shows=(".n_sentences",))


def place_of(head: HeadRole) -> Place:
    """Return the layer and the head."""
    return head.layer, head.head


def is_tested(head: HeadRole) -> bool:
    """Return whether the tests were counted: they are not for a single sentence, nor in an older file."""
    return bool(head.strongest)


def role_of(head: HeadRole) -> str:
    """Return the strongest test over many sentences, else the role; "none" if it matches no pattern."""
    if is_tested(head):
        return head.strongest if head.has_role else "none"
    return head.role


def strength(head: HeadRole) -> float:
    """Return how clearly a head has its role: in thresholds of its strongest test, or its share."""
    return _or_zero(head.strength if is_tested(head) else head.score)


def called(p: Page, head: HeadRole, form: str = "name") -> str:
    """Return the ``form`` ("name", "short") of a head's strongest test, with its offset, else of its role."""
    if not is_tested(head):
        return p.words(f"role.{head.role}.{form}")
    test = head.strongest
    where = head.measures[test].offset or 0
    if form == "short" and test == "offset" and abs(where) == 1:
        return p.words(f"role.{'previous' if where < 0 else 'next'}.short")
    return p.words(f"test.{test}.{form}", where=where, end=where + WINDOW - 1)


def tests_of(p: Page, head: HeadRole) -> Marked:
    """Return the tests that a head reaches, the strongest first, else its strongest, with numbers.

    A head may be a sink in most sentences and an induction head where a word is repeated.
    """
    unnamed = (*GENERAL, *NO_ROLE)
    names = [name for name, one in head.measures.items() if one.reached and name not in unnamed]
    said = "tests_clear" if head.has_role else "tests_no_role" if head.clear else "tests_weak"
    if len(names) < 2:
        names = [head.strongest]
    parts = []
    for name in sorted(names, key=lambda name: -head.measures[name].strength):
        one = head.measures[name]
        where = one.offset or 0
        test = p.md(f"test.{name}.name", where=where, end=where + WINDOW - 1)
        parts.append(p.md(said, test=test, score=one.score, least=one.least, chance=one.chance))
    return listed(parts)


def group_of(p: Page, head: HeadRole) -> str:
    """Return what the legend calls a head's role, whatever its offset."""
    if not is_tested(head):
        return p.text["role"][head.role]["title"]
    return _whatever_offset(p, head.strongest)


def _whatever_offset(p: Page, test: str) -> str:
    named = p.text["test"][test]
    return named.get("group") or named["name"]


# ---- maps -----------------------------------------------------------------------------------------------------------


def claim(p: Page, heads: Sequence[HeadRole], *, many: bool) -> None:
    """Say how many heads match a named pattern, as the first sentence of the page."""
    if all(math.isnan(score) for head in heads for score in head.scores.values()):
        p.say("claim_too_short")
        return
    count = sum(role_of(head) != "none" for head in heads)
    where = p.md("claim_many", count=heads[0].n_sentences) if many else p.md("claim_here")
    name = {0: "none", 1: "one", len(heads): "all"}.get(count, "some")
    said = p.md(f"claim_{name}", count=count, heads=len(heads), where=where)
    st.markdown(f"{said} {p.md('claim_maps')}" if many else said)


def claim_on_image(p: Page, views: Sequence[AttentionView], row: int) -> None:
    """Say what the maps over an image show."""
    tokens = views[0].query
    p.say("image_claim_class" if tokens.is_class_token(row) else "image_claim", token=tokens.labels[row])


def image_row(p: Page, views: Sequence[AttentionView]) -> int | None:
    """Return the row shown over a square image, the followed token's; ``None`` for whole maps."""
    return min(p.focus.token, len(views[0].query) - 1) if views[0].key.patches_across else None


def chosen_order(p: Page, *, many: bool) -> str:
    """Choose the order of the small maps; each list of orders has its own key."""
    names, key = list(ORDERS), "heads_corpus_order_induction"
    if not many or p.checkpoint.config.kind != "decoder-only":
        names, key = (names[:-1], "heads_corpus_order") if many else (names[:-2], "heads_order")
    return p.option("order", names, key=key, in_list=True, help=p.text["order_help_corpus" if many else "order_help"])


def in_order(heads: Sequence[HeadRole], order: str) -> list[Place] | None:
    """Return the locations of the small maps; ``None`` for a table of layers × heads."""
    return [place_of(head) for head in sorted(heads, key=ORDERS[order])] if ORDERS[order] else None


def words_of(p: Page, view: AttentionView, head: HeadRole) -> tuple[HeadWords, Place | None]:
    """Return the texts about a head for its small and its large map, and the cell that its sentence names."""
    role, short = role_of(head), short_of(p, head)
    if head.n_sentences is not None:
        return HeadWords(short, *_words_over_many(p, head)), None
    if role != "none":
        return HeadWords(short, p.words(f"role.{role}.title"), p.words(f"role.{role}.sentence", score=head.score)), None
    if (cell := view.strongest_pair(head.head)) is None:
        return HeadWords(short, p.words("no_role"), ""), None
    named = {"query": row_labels(p, view)[cell[0]], "key": view.key.labels[cell[1]]}
    weight = float(view.weights[head.head][cell])
    said = p.words("example_cross" if view.kind == "cross" else "example", weight=weight, **named)
    return HeadWords(short, p.words("no_role"), said), cell


def _words_over_many(p: Page, head: HeadRole) -> tuple[str, str]:
    """Return the title and the sentence of a large map."""
    if not is_tested(head):
        return p.words(f"role.{head.role}.title"), ""
    name, found = called(p, head), head.measures[head.strongest]
    numbers = {"count": head.n_sentences, "score": found.score, "chance": found.chance, "least": found.least}
    if head.clear:
        return name[:1].upper() + name[1:], p.words("test_sentence", **numbers)
    return p.words("no_role"), p.words("test_sentence_weak", test=name, **numbers)


def short_of(p: Page, head: HeadRole) -> str:
    """Return the strongest test of a head with its score; without tests its role, or the nearest one."""
    if is_tested(head):
        return f"{called(p, head, 'short')} {number(f'{head.measures[head.strongest].score:.2f}')}"
    name = (head.nearest if head.role == "none" else head.role) or head.role
    score = head.scores.get(name, math.nan)
    return p.words(f"role.{name}.short") + ("" if math.isnan(score) else " " + number(f"{score:.2f}"))


def row_labels(p: Page, view: AttentionView) -> Sequence[str]:
    """Return the labels of rows as the maps write them: the predicted tokens for cross-attention."""
    return predicted_rows(p.trace, view.kind) or view.query.labels


def show_maps(p: Page, views: Sequence[AttentionView], heads: Sequence[HeadRole], *, order: str, stretch: bool) -> None:
    """Draw the selected head large and all heads small; a click selects a head on all pages."""
    at = {place_of(head): head for head in heads}
    roles = {place: role_of(head) for place, head in at.items() if role_of(head) != "none"}
    clear = sorted(roles, key=lambda place: (roles[place] in IDLE, -strength(at[place])))
    found = {place: words_of(p, views[head.layer], head) for place, head in at.items()}
    group = {place: group_of(p, at[place]) for place in clear}
    count = Counter(group.values()).most_common()
    colours = {name: COLOURS[min(place, len(COLOURS) - 1)] for place, (name, _) in enumerate(count)}
    groups = [(p.words("group_count", name=name, count=n), colours[name]) for name, n in count]
    if len(groups) > len(COLOURS):
        rest = sum(n for _, n in count[len(COLOURS) - 1 :])
        groups[len(COLOURS) - 1 :] = [(p.words("group_count", name=p.words("group_others"), count=rest), COLOURS[-1])]
    draw(
        p, views, {place: words for place, (words, _) in found.items()},
        colours={place: colours[name] for place, name in group.items()},
        groups=groups,
        clear=clear,
        marked={place: cell for place, (_, cell) in found.items()},
        faded=p.words("faded", count=len(heads) - len(clear)),
        order=in_order(heads, order),
        shifted_labels=predicted_rows(p.trace, p.focus.kind),
        stretch=stretch,
    )  # fmt: skip
    if not stretch and len(views[0].key) > MANY_TOKENS:
        p.say("dark", small=True, count=len(views[0].key), switch=p.text["stretch"])


def show_image_maps(
    p: Page, views: Sequence[AttentionView], heads: Sequence[HeadRole], row: int, *, order: str, stretch: bool
) -> None:
    """Draw the row of one token over the image, for the selected head large and for all heads small."""
    keys = views[0].key
    rows = {(view.layer, head): weights[row] for view in views for head, weights in enumerate(view.weights)}
    words = {}
    for place, weights in rows.items():
        first, second = np.argsort(-weights, kind="stable")[:2]
        names = {"patch": label_in_words(keys.labels[first])}
        title = p.words("image_title", share=weights[first], **names)
        said = p.words("image_sentence", share=weights[second], patch=keys.labels[second])
        words[place] = HeadWords(number(f"{weights[first]:.2f}"), title[:1].upper() + title[1:], said)
    patches = list(keys.patches)
    strongest = {place: int(weights.argmax()) for place, weights in rows.items()}
    draw(
        p, views, words,
        clear=list(rows),
        marked={
            place: divmod(patches.index(key), keys.patches_across) for place, key in strongest.items() if key in patches
        },
        order=in_order(heads, order),
        image_row=row,
        stretch=stretch,
    )  # fmt: skip


def draw(p: Page, views: Sequence[AttentionView], words: Mapping[Place, HeadWords], **more: object) -> None:
    """Draw all heads; those that share keys and values are on one band."""
    shared = len(sharing_keys(p, views[0]))
    figure = attention_heads(views, words=words, selected=(p.focus.layer, p.focus.head), heads_a_key=shared, **more)
    show_grid(figure, key="heads grid")


def sharing_keys(p: Page, view: AttentionView) -> range:
    """Return the heads that share keys and values with the selected one (GQA, Ainslie et al. 2023)."""
    size = view.n_heads // (p.checkpoint.config.n_key_heads or view.n_heads)
    first = p.focus.head - p.focus.head % size
    return range(first, first + size)


# ---- the selected head ----------------------------------------------------------------------------------------------


def show_head(p: Page, views: Sequence[AttentionView], here: HeadRole, over_many: HeadRole | None) -> None:
    """Say what the selected head does, here and over many sentences, with a link to Attention."""
    with st.container(horizontal=True, vertical_alignment="center"):
        does, kind = p.md(f"role.{here.role}.does"), p.md(f"kind_{p.focus.stack}_{p.focus.kind}")
        said = p.md("chosen", layer=here.layer, head=here.head, kind=kind, does=does)
        if over_many is not None and is_tested(over_many):
            name = "over_clear" if over_many.has_role else "over_weightless" if over_many.clear else "over_weak"
            test = over_many.measures[over_many.strongest]
            numbers = {"count": over_many.n_sentences, "score": test.score, "chance": test.chance, "least": test.least}
            said += p.md(name, test=called(p, over_many), **numbers)
        if len(sharing := sharing_keys(p, views[0])) > 1:
            said += p.md("shares", first=sharing[0], last=sharing[-1])
        st.markdown(said, width="content")
        if st.button(p.text["open"], icon=":material/visibility:"):
            go_to("attention")


# ---- below ----------------------------------------------------------------------------------------------------------


def show_below(p: Page, views: Sequence[AttentionView], heads: Sequence[HeadRole], over_many: HeadRole | None) -> None:
    """Draw the table of all numbers, or the card of the selected head."""
    sections = ("table",) if p.reads_pictures else ("table", "card")
    section = p.option("section", sections, key="heads_section", owner=sections)
    with st.container(key=BELOW):
        if section == "card":
            card(p, over_many, tests=tests_of(p, over_many) if over_many and is_tested(over_many) else "")
        else:
            table(p, views, heads)


def table(p: Page, views: Sequence[AttentionView], heads: Sequence[HeadRole]) -> None:
    """List all heads with all numbers, and one token's weight in another's row; a row selects a head."""
    many, (query, key) = heads[0].n_sentences is not None, (views[0].query, views[0].key)
    pair, weights = "", {}
    if not p.reads_pictures:
        with st.container(horizontal=True):
            owner = {"owner": (query.ids, p.focus.stack, p.focus.kind)}
            row = p.token("from", query, min(p.focus.token, len(query) - 1), key="heads_from", **owner)
            first = int(views[p.focus.layer].weights[p.focus.head, row].argmax())
            column = p.token("to", key, first, key="heads_to", **owner)
        pair = p.words("pair", query=query.labels[row], key=key.labels[column])
        weights = {
            (view.layer, head): view.weights[head, row, column] for view in views for head in range(view.n_heads)
        }
    known = {name for head in heads for name, score in head.scores.items() if not math.isnan(score)}
    counted = {name for head in heads if is_tested(head) for name in head.measures}
    measured = [name for name in (*FIRST_MEASURES, *ROLES) if name in known]
    tests = [name for name in MEASURES if name in counted]
    columns = {name: p.words("column_test", test=_whatever_offset(p, name)) for name in tests}
    names = {name: p.text["measure"].get(name) or p.text["role"][name]["name"] for name in measured}
    rows = [
        {
            "layer": head.layer,
            "head": head.head,
            "role": p.text["role"][head.role]["name"],
            "score": head.score,
            **({"consistency": head.consistency} if many else {}),
            **({pair: weights[place_of(head)]} if pair else {}),
            **{called: head.scores.get(name, math.nan) for name, called in names.items()},
            **{columns[name]: _score(head, name) for name in tests},
        }
        for head in heads
    ]
    p.heads_table(rows, name="heads", caption=p.md("table_caption_corpus" if many else "table_caption"))


def show_definitions(p: Page, views: Sequence[AttentionView]) -> None:
    """Show the layer's formula, the definitions of all roles with their sources, and the page's Python."""
    with st.expander(p.text["definitions"], icon=":material/menu_book:"):
        attention, rows = p.checkpoint.model.get_submodule(views[0].name), len(views[0].query)
        width, together = attention.output_projection.weight.shape
        bias = "" if attention.output_projection.bias is None else " + b_O"
        last = attention.n_heads - 1
        p.formula(
            rf"\underset{{{rows} \times {width}}}{{\text{{MultiHead}}}} = "
            rf"\underset{{{rows} \times {together}}}{{[\text{{head}}_0 \mid \dots \mid \text{{head}}_{{{last}}}]}}\;\;"
            rf"\underset{{{together} \times {width}}}{{W_O}}{bias}",
            "formula", heads=attention.n_heads, d_head=attention.d_head, d_model=together, rows=rows,
        )  # fmt: skip
        p.say("definition", shortest=min(induction.repeated_lengths(1 + 2 * induction.LONGEST)), **CONSTANTS)
    p.code()


def roles_here(p: Page, views: Sequence[AttentionView]) -> tuple[HeadRole, ...]:
    """Return the roles of all heads of this kind in this sentence."""
    number = sum(view.n_heads for view in views[: p.focus.layer]) + p.focus.head
    return p.calc(
        roles_in, p.trace, p.focus.stack, p.focus.kind, name="roles", shows=(f"[{number}].role", f"[{number}].scores")
    )


def attention_views(p: Page) -> list[AttentionView]:
    """Return the attention of this kind, one view for each layer."""
    trace, stack, kind = p.trace, p.focus.stack, p.focus.kind
    return [trace.attention(stack, layer, kind) for layer in range(trace.n_layers(stack))]


def _score(head: HeadRole, test: str) -> float:
    return head.measures[test].score if test in head.measures else math.nan


def _or_zero(value: float) -> float:
    return 0.0 if math.isnan(value) else value
