"""The head on the Attention page: the controls, the map, its row in words, colours and numbers.

What is below them is in ``steps``, ``one_cell``, ``reading``, ``trust``, ``beyond`` and ``long_text``.
"""

import math
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import streamlit as st

import transformer
from charts.canvas.attention_maps import (
    KEY_TITLE,
    attention_lines,
    attention_map,
    attention_name,
    patch_pictures,
    row_title,
    title_of,
)
from charts.canvas.value_map import value_map
from charts.figures.row_on_picture import row_on_picture
from charts.toolkit.shades import colour_at, ink
from charts.toolkit.style import SEQUENTIAL, three_digits
from charts.toolkit.words import localize, say
from transformer.attention_maps.attention_path import AttentionPath, attention_path, norm_weighted
from transformer.attention_maps.rollout import Rollout, attention_rollout
from transformer.guests.described_layers import SandwichLayer
from transformer.interventions.head_importance import head_effect
from transformer.predictions.answer_probabilities import prediction_rows
from transformer.runs.attention_view import AttentionView
from transformer.runs.inputs import prompt_of
from transformer.text.tokens import TokenSequence
from ui.page.page import Page
from ui.shell import choice
from ui.shell.events import heard, mark_opened, whole_number
from ui.shell.focus import current, is_presenting
from ui.shell.openings import has_place
from ui.shell.picture import picture_address
from ui.shell.strip import choose_token
from ui.shell.token_rows import token_rows
from ui.show.drawings import Cell, show_lines, show_map
from ui.show.figures import show_figure
from ui.words.texts import Marked, as_plain, common, label_in_words, plain_word

DRAWINGS = ("map", "lines", "values", "rollout")
RARER = ("values", "rollout")  # chosen under "More"
SHOW, STRETCH, KEY = "attention_show", "attention_stretch", "attention_key"
ARITHMETIC = "attention arithmetic"  # the container beside the map
FEW_KEYS = 48  # up to this many columns, a map as high as the window leaves space beside it
STYLE = Path(__file__).with_name("attention.css")
PRESENTED_STYLE = Path(__file__).with_name("presented.css")
_SHADED = "attention shaded sentence"
_SHARE, _NAMED = 0.005, 3  # the smallest weight of a row that is named as one of those that look most at a token
_ANSWER = 12  # tokens of an output that are written out
# Pixels: the map and all above it fit on the first screen of a projector; the sentence above a wide map takes some.
_HEIGHT, _LESSON_HEIGHT, _PRESENTED_HEIGHT = 410, 375, 525
_AROUND, _LINE, _LETTER, _ACROSS, _LINES = 36, 28, 8.0, 900, 2


@dataclass(frozen=True)
class Shown:
    """One row of one head, and how it is drawn.

    Attributes:
        view: The layer.
        drawn: What the figure shows, as one head whose rows sum to 1.
        drawing: One of ``DRAWINGS``.
        predicts: Whether the rows are named after the tokens that they predict.
        labels: The names of the rows.
        stretch: Whether the colour scale ends at the largest weight.
        key: The column whose arithmetic is open, if any.
    """

    view: AttentionView = field(repr=False)
    drawn: AttentionView = field(repr=False)
    head: int
    row: int
    drawing: str
    predicts: bool
    labels: tuple[str, ...]
    stretch: bool
    key: int | None

    @property
    def cell(self) -> tuple[int, int] | None:
        """The row and the column whose arithmetic is open."""
        return None if self.key is None else (self.row, self.key)

    @property
    def limit(self) -> float:
        """The weight at which the colour scale ends."""
        largest = self.drawn.weights[0].max(initial=0.0, where=self.drawn.allowed)
        return (float(largest) or 1.0) if self.stretch else 1.0


# ---- the choices ----------------------------------------------------------------------------------------------------


def stack(p: Page) -> str:
    """Return the stack in focus, whose tokens are the rows of the map."""
    return p.focus.stack


def place(p: Page) -> tuple[str, int, str]:
    """Return stack, layer and kind, as the functions of ``transformer`` take them."""
    return p.focus.stack, p.focus.layer, p.focus.kind


def layer(p: Page) -> AttentionView:
    """Return all heads of the layer in focus."""
    return p.calc(p.trace.attention, *place(p), name="view", shows=(f".weights[{p.focus.head}, {p.focus.token}]",))


def head_path(p: Page) -> AttentionPath:
    """Return every step of the head, from its queries and keys to its output."""
    return p.calc(attention_path, p.trace, *place(p), head=p.focus.head, name="path", keep=not p.reads_long_text)


def queries(p: Page) -> str:
    """Return the name of the layer's queries, which some models of other families do not expose."""
    return f"{p.focus.stack}.layers.{p.focus.layer}.{p.focus.kind}_attention.query"


def begins(p: Page) -> tuple[str, int]:
    """Begin at the row of the head's largest weight; in a long text, at the token that is continued."""
    if p.reads_long_text:
        return p.focus.stack, len(prompt_of(p.checkpoint, p.sentence)) - 1
    if has_place(p.focus.checkpoint, p.focus.sentence):
        return p.focus.stack, p.focus.token
    pair = p.trace.attention(*place(p)).strongest_pair(p.focus.head)
    return p.focus.stack, p.focus.token if pair is None else pair[0]


def names_predictions(p: Page) -> bool:
    """Return whether rows are named after predictions, even if the switch is not drawn."""
    if p.reads_long_text or p.focus.stack != "decoder" or queries(p) not in p.trace:
        return False
    return choice.is_on(_names_key(p), default=p.focus.kind == "cross")


def _names_key(p: Page) -> str:
    return "attention_predicted_cross" if p.focus.kind == "cross" else "attention_predicted"


def _choose_names(p: Page) -> bool:
    """Draw the switch between the names of a decoder's rows.

    A row of cross-attention attends to the source of the token that it predicts; a row of self-attention attends to
    earlier tokens that were read.
    """
    return p.toggle("predicted", key=_names_key(p), default=p.focus.kind == "cross")


def choose(p: Page) -> Shown:
    """Draw the page's first row: the sentence about the row, the common controls, and "More".

    In a lesson, the switch for the names of the rows stays in the row, because steps refer to it.
    """
    view, is_recorded = layer(p), queries(p) in p.trace
    offered = [name for name in DRAWINGS if is_recorded or name != "values"]
    has_names, predicts, key = is_recorded and p.focus.stack == "decoder", False, None
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        said = st.container()
        now = p.asked("show", offered, key=SHOW)
        in_row = [name for name in offered if name not in RARER or name == now]
        drawing = p.option("show", in_row, key=SHOW, label_visibility="collapsed")
        if has_names and p.focus.lesson:
            predicts = _choose_names(p)
        with st.popover(p.text["more"], icon=":material/tune:", key="attention more"):
            with st.container(horizontal=True, gap="small"):
                for name in RARER:
                    if name in offered:
                        st.button(p.text["show"][name], key=f"show {name}", on_click=choice.put, args=(SHOW, name))
            if has_names and not p.focus.lesson:
                predicts = _choose_names(p)
            if is_recorded:
                key = choose_key(p, view.key)
            stretch = drawing in ("map", "rollout") and p.toggle("stretch", key=STRETCH, default=p.reads_files)
    labels = (p.trace.prediction if predicts else view.query).labels
    drawn = _drawn(p, view, drawing)
    shown = Shown(view, drawn, p.focus.head, p.focus.token, drawing, predicts, labels, stretch, key)
    with said:
        claim(p, shown)
    return shown


def choose_key(p: Page, keys: TokenSequence) -> int | None:
    """Draw the list of columns whose arithmetic can be opened."""
    called = {label: index for index, label in enumerate(keys.labels)}
    return choice.select(
        p.text["cell"], range(len(keys)), key=KEY, owner=keys.ids, called=called,
        format_func=lambda key: keys.labels[key] if isinstance(key, int) else key,
        placeholder=p.text["cell_placeholder"],
    )  # fmt: skip


def _drawn(p: Page, view: AttentionView, drawing: str) -> AttentionView:
    if drawing == "rollout":
        return _rollout(p).view(p.focus.kind)
    one = one_head(view, p.focus.head)
    if drawing != "values":
        return one
    lengths = added_lengths(p)
    total = lengths.sum(axis=-1, keepdims=True)
    return replace(one, weights=np.divide(lengths, total, out=np.zeros_like(lengths), where=total > 0)[None])


def one_head(view: AttentionView, head: int) -> AttentionView:
    """Return one head of a layer as a view of its own."""
    return replace(view, weights=view.weights[head][None], scores=view.scores[head][None])


def _rollout(p: Page) -> Rollout:
    return p.calc(attention_rollout, p.trace, p.focus.stack, layer=p.focus.layer, name="rollout")


def added_lengths(p: Page) -> np.ndarray:
    """Return ‖α·v‖, what each query receives from each key: [query, key], in units of the residual stream."""
    return p.calc(norm_weighted, p.trace, *place(p), name="received")[p.focus.head]


# ---- the map and its row --------------------------------------------------------------------------------------------


def claim(p: Page, shown: Shown) -> None:
    """Say, as the first sentence of the page, which token the row attends to most."""
    key, values = row_claim(shown.drawn, shown.row, head=shown.head, label=shown.labels[shown.row])
    if key == "aloud":
        key += f"_{shown.drawing}" * (shown.drawing in RARER) + "_predicting" * shown.predicts
    if shown.view.query.is_class_token(shown.row):
        values["row"] = p.text["class_token"]
    p.say(key, **values)


def row_claim(view: AttentionView, row: int, *, head: int, label: str) -> tuple[str, dict[str, object]]:
    """Return the name of the sentence about a row of one drawn head, with its values.

    A patch without ink is called empty: a head may look there all the same.
    """
    weights, allowed, values = view.weights[0, row], view.allowed[row], {"row": plain_word(label)}
    if not allowed.any() or view.query[row].is_padding:
        return "aloud_padding" if allowed.any() else "aloud_nothing", values
    best = int(np.where(allowed, weights, -1.0).argmax())
    name, pixels = view.key.labels[best], view.key[best].pixels
    is_empty = bool(pixels) and not any(map(bool, pixels))
    first = common("picture.empty_patch", name=name) if is_empty else plain_word(name)
    return "aloud", {**values, "head": str(head), "first": first, "share": float(weights[best])}


def map_height(shown: Shown | None = None) -> int:
    """Return the height of a map in pixels for a projector; a wide one has the sentence above it."""
    height = _PRESENTED_HEIGHT if is_presenting() else _LESSON_HEIGHT if current().lesson else _HEIGHT
    if shown is None or shown.cell or not is_wide(shown.view):
        return height
    letters = sum(len(token.display) * _LETTER + 12 for token in shown.view.key)
    return height - _AROUND - _LINE * min(_LINES, math.ceil(letters / _ACROSS))


def is_wide(view: AttentionView) -> bool:
    """Return whether a map has so many columns that nothing fits beside it."""
    return len(view.key) > FEW_KEYS and not view.key.patches


def draw(p: Page, shown: Shown) -> None:
    """Draw the figure; a click on a cell opens its arithmetic, a click on a token focuses it."""
    st.html(STYLE)
    if is_presenting() and not p.focus.lesson:  # a lesson may ask about the tokens above the map
        st.html(PRESENTED_STYLE)
    view, head, title = shown.view, shown.head, title_of(shown.view, head=shown.head)
    opens = cell_opener(shown.key) if queries(p) in p.trace else follow_row
    if shown.drawing == "map":
        figure = attention_map(
            view, head=head, shifted_labels=shown.labels if shown.predicts else None, selected=shown.cell,
            stretch=shown.stretch, chosen_row=shown.row, height=map_height(shown), follow_pointer=True,
        )  # fmt: skip
        show_map(figure, key="attention map", on_click=opens)
    elif shown.drawing == "lines":
        named = replace(view, query=p.trace.prediction if shown.predicts else view.query)
        figure = attention_lines(named, heads=[head], selected_token=shown.row)
        show_lines(figure.with_metadata(row_title=localize(row_title(shifted=shown.predicts))), key="attention lines")
    elif shown.drawing == "values":
        _draw_values(
            shown, added_lengths(p), "values", title=f"‖α·v‖ · {title}", value_name="‖α·v‖", on_click=opens,
            selected=shown.cell, phrase=("", " gets from "),
        )  # fmt: skip
        block = p.checkpoint.model.get_submodule(f"{view.stack}.layers.{view.layer}")
        p.say("show_values_sandwich" if isinstance(block, SandwichLayer) else "show_values_help", small=True)
    else:
        layers, rollout = say("attention.layers_up_to", layer=view.layer), _rollout(p)
        _draw_values(
            shown, shown.drawn.weights[0], "rollout", on_click=follow_row, value_name=say("names.share"),
            title=" · ".join((say("names.rollout"), attention_name(view), layers)), phrase=("", " is made of "),
            limit=None if shown.stretch else 1.0,
        )  # fmt: skip
        p.say("show_rollout_help", small=True)
        if rollout.source is not None and rollout.target is not None:
            p.say("show_rollout_source", small=True, share=rollout.source.values[shown.row].sum())


def _draw_values(shown: Shown, values: np.ndarray, name: str, *, on_click: object, **more: object) -> None:
    figure = value_map(
        values, row_labels=shown.labels, column_labels=shown.view.key.labels, column_title=KEY_TITLE,
        row_title=row_title(shifted=shown.predicts), scale="sequential", allowed=shown.drawn.allowed,
        chosen_row=shown.row, height=map_height(shown), follow_pointer=True, **more,
    )  # fmt: skip
    pictures = patch_pictures(shown.view.query, shown.view.key)
    show_map(figure.with_metadata(**pictures), key=f"attention {name}", on_click=on_click)


def cell_opener(key: int | None) -> partial:
    """Return the handler of a click on a map, which opens the cell's arithmetic unless it is open."""
    return partial(_open_cell, key)


def _open_cell(open_key: int | None, cell: Cell) -> None:
    if (cell.query, cell.key) != (current().token, open_key):
        choose_token(cell.query)
        open_column(cell.key)


def open_column(key: int) -> None:
    """Open the arithmetic of the focused query and this key."""
    choice.put(KEY, key)
    mark_opened(ARITHMETIC)


def follow_row(cell: Cell) -> None:
    """Follow the token of a row."""
    choose_token(cell.query)


# ---- the sentence in the colours of its row -------------------------------------------------------------------------


def shaded_sentence(p: Page, shown: Shown) -> None:
    """Draw the row as a sentence or on an image's patches; in self-attention, a click follows a word."""
    view, same = shown.view, shown.view.kind == "self"
    form = shown.drawing if shown.drawing in RARER else "map"
    title = p.words(f"shaded.{form}{'_predicted' * shown.predicts}", row=plain_word(shown.labels[shown.row]))
    tokens = [_shaded_token(p, shown, key) for key in range(len(view.key))]
    row = {"title": title, "tokens": tokens, "chosen": shown.row if same else None, "clickable": same}
    hint = p.text["shaded_hint" if same else "shaded_hint_cross"]
    if patches := view.key.patches:
        across, address = p.checkpoint.tokenizer.per_row, picture_address(p.sentence, p.checkpoint.config)
        row |= {"picture": address, "across": across, "down": len(patches) // across}
        for number, at in enumerate(patches):
            tokens[at]["patch"] = number
        if p.checkpoint.config.n_classes and view.query.is_class_token(shown.row):
            hint = f"{p.text['class_token_why']} {hint}"
    wide = (is_wide(view) or shown.cell is not None) and not patches
    data = {"look": "shaded", "rows": [row], "hint": hint, "wide": wide}
    token_rows(key=_SHADED, data=data, on_chosen_change=_follow_shaded)


def _shaded_token(p: Page, shown: Shown, key: int) -> dict[str, object]:
    """Return a word as data: plain text, which the component inserts with ``textContent``."""
    view, token, label = shown.drawn, shown.view.key[key], label_in_words(shown.view.key.labels[key])
    weight, seen, by = float(view.weights[0, shown.row, key]), bool(view.allowed[shown.row, key]), []
    says = p.words("shaded_word" if seen else "shaded_masked", word=label, share=weight)
    if not shown.predicts and shown.drawing not in RARER:
        column = np.where(view.allowed[:, key] & (view.allowed.sum(axis=1) > 1), view.weights[0, :, key], 0.0)
        most = [row for row in np.argsort(-column, kind="stable")[:_NAMED].tolist() if column[row] >= _SHARE]
        by = [f"{label_in_words(view.query.labels[row])} {three_digits(float(column[row]))}" for row in most]
    is_apart = token.display.startswith("·") or token.special or (key and shown.view.key[key - 1].special)
    kinds = {"apart": is_apart and key, "followed": view.kind == "self" and key == shown.row, "masked": not seen}
    share = min(1.0, weight / shown.limit)
    return {
        "text": token.display.removeprefix("·") or token.display,
        "ground": colour_at(share, colours=SEQUENTIAL) if seen else "",
        "ink": ink(share, colours=SEQUENTIAL) if seen else "",
        "kind": " ".join(name for name, holds in kinds.items() if holds),
        "name": says,
        "says": says + (p.words("shaded_by", words=", ".join(by)) if by else ""),
        "sends": key,
    }


def _follow_shaded() -> None:
    token = whole_number(heard(_SHADED, "chosen"))
    if token is not None:
        choose_token(token)


def on_picture(p: Page, shown: Shown) -> None:
    """Draw one figure per head with the weight of each patch, and those of other tokens above it."""
    view, row = shown.view, shown.row
    weights, patches = view.weights[:, row], list(view.key.patches)
    figure = row_on_picture(
        weights[:, patches].reshape(len(weights), -1, p.checkpoint.tokenizer.per_row),
        picture=picture_address(p.sentence, p.checkpoint.config),
        names=[_name_of_panel(view, head, row) for head in range(len(weights))],
        labels=[view.key.labels[at] for at in patches],
        stretch=shown.stretch,
    )
    caption = p.md("picture_caption", row=view.query.labels[row], layer=view.layer)
    show_figure(figure, name="row-on-picture", caption=caption, alt=p.text["picture_alt"])


def _name_of_panel(view: AttentionView, head: int, row: int) -> str:
    """Return "head 2: [CLS] 0.13, others 0.4" (registers): what the patches of the figure do not show."""
    special = [token for token in view.key if token.special]
    shares = [float(view.weights[head, row, token.index]) for token in special]
    if not special:
        return say("names.numbered_head", head=head)
    name = "attention.head_shares" if len(special) > 1 else "attention.head_share"
    rest = three_digits(sum(shares[1:]))
    return say(name, head=head, token=special[0].display, share=three_digits(shares[0]), rest=rest)


# ---- the numbers ----------------------------------------------------------------------------------------------------


def facts(p: Page, shown: Shown) -> None:
    """Draw the effect of removing the head and, collapsed except in a lesson, the numbers of the row."""
    is_of_head = shown.drawing != "rollout" and queries(p) in p.trace
    if is_of_head:
        _effect(p)
    with (
        st.expander(p.text["numbers"], key="attention numbers", expanded=bool(p.focus.lesson and is_of_head)),
        st.grid(4, min_column_width=150, key="attention facts"),
    ):
        row_numbers(p, shown)
        if shown.drawing == "rollout":
            p.say("rollout_no_head", small=True)
        elif is_of_head:
            lengths = added_lengths(p)[shown.row]
            total, best = float(lengths.sum()), int(lengths.argmax())
            name = label_in_words(shown.view.key.labels[best]) if total else p.text["nothing"]
            _metric(p, "strongest", as_plain(name), share=float(lengths[best]) / total if total else 0.0)


def row_numbers(p: Page, shown: Shown) -> None:
    """Draw the entropy of the row, and its share of special tokens and punctuation."""
    drawn, row = shown.drawn, shown.row
    of = {"values": "‖α·v‖: ", "rollout": f"{p.text['show']['rollout']}: "}.get(shown.drawing, "")
    if (allowed := int(drawn.allowed[row].sum())) < 2:
        p.say("no_choice" if allowed else "no_choice_at_all", small=True, row=shown.view.query.labels[row])
    else:
        _metric(p, "entropy", three_digits(float(drawn.entropy[0, row])), of=of, most=math.log2(allowed))
    shares = drawn.sink_share[0]
    _metric(p, "sinks", three_digits(float(shares[row])), of=of, mean=float(shares.mean()))


def _effect(p: Page) -> None:
    """Draw the factor by which the probability of the output changes without the head."""
    found = p.calc(head_effect, p.trace, *place(p), head=p.focus.head, name="without_head", shows=(".factor",))
    answer, everywhere = found.asked.displays, prediction_rows(p.trace).everywhere
    if found.asked.predicts_nothing:
        p.say("effect_none", small=True)
        return
    what = p.text["effect_what_text" if everywhere else "effect_what"]
    what = plain_word(answer[0]) if len(answer) == 1 else what
    label = p.md("effect_of_one", what=what) if len(answer) == 1 and not everywhere else p.text["effect"]
    words = " ".join(answer[:_ANSWER]) + " …" * (len(answer) > _ANSWER)
    with st.container(key="attention effect"):  # a lesson covers it
        value = p.md("effect_value", what=what, factor=found.factor)
        _metric(p, "effect", value, label=label, answer=words, change=found.change)


def _metric(p: Page, name: str, value: str, *, of: str = "", label: str = "", **values: object) -> None:
    below, explanation = p.words(f"{name}_of", **values), p.md(f"{name}_help", **values)
    label = label or Marked(of + p.text[name])
    st.metric(label, value, below, delta_color="off", delta_arrow="off", help=explanation)


def rewrite(p: Page) -> None:
    """Decode again without the focused head on request: up to a hundred forward passes."""
    if not p.checkpoint.config.has_decoder or not p.toggle("rewrite", key="attention rewrite"):
        return
    stack, layer, kind = place(p)
    edit = p.calc(transformer.ablate_head, stack, layer=layer, kind=kind, head=p.focus.head, name="removed")
    after = p.calc(
        transformer.decode, p.checkpoint, p.sentence, edits=[edit], source_pads=p.run.source_pads,
        name="rewritten", shows=(".text",), wait="wait.rewrite",
    ).text  # fmt: skip
    p.say("rewrite_same" if after == p.trace.text else "rewrite_changed", after=after, before=p.trace.text)


def show_head(p: Page, shown: Shown, arithmetic: object) -> None:
    """Draw the map and, beside it, the sentence and numbers, or the ``arithmetic`` of an open cell.

    A wide map has the sentence above it; the row of an image comes before the map.
    """
    if is_wide(shown.view) and not shown.cell:
        shaded_sentence(p, shown)
        draw(p, shown)
        facts(p, shown)
        return
    grid = st.grid(3, min_column_width=270 if shown.cell else 205, key="attention picture")
    before = shown.view.key.patches and not shown.cell
    first = grid.cell() if before else grid.cell(column_span=2)
    second = grid.cell(column_span=2) if before else grid.cell()
    picture, beside = (second, first) if before else (first, second)
    with picture:
        draw(p, shown)
    if shown.cell:
        with beside, st.container(border=True, key=ARITHMETIC, gap="xsmall"):
            arithmetic(p, shown)
        shaded_sentence(p, shown)
        facts(p, shown)
        return
    with beside:
        shaded_sentence(p, shown)
        facts(p, shown)
