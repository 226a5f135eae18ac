"""Patching on the Paths page: a word is swapped, and activations of the original run are patched in."""

from collections.abc import Callable, Hashable, Sequence
from functools import partial

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from charts.canvas.value_map import value_map
from charts.toolkit.head_names import head_in_full
from charts.toolkit.numbers import percent, whole
from charts.toolkit.style import signed, three_digits_alike
from transformer.errors import InputError
from transformer.interventions.activation_patching import (
    HEADS,
    Contrast,
    Place,
    Turn,
    contrast_of,
    n_passes,
    patched_differences,
    recovered_shares,
)
from transformer.interventions.attribution_patching import estimated_shares
from transformer.interventions.edge_attribution import estimated_edges
from transformer.interventions.experiment import experiment
from transformer.interventions.path_patching import INPUTS, path_patching, senders_of
from transformer.runs.head_places import Head
from transformer.runs.output_tokens import token_of
from ui.compute.jobs import jobs
from ui.compute.store import store
from ui.lab import sweeps
from ui.lab.effects import text_up_to
from ui.lab.experiments import experiment_with
from ui.lab.second_sentence import name_of_image, ready_pairs, second_sentence
from ui.lab.uncertain_output import uncertainty_note
from ui.shell import choice
from ui.shell.actions import Actions, OpenPage, SelectCell, SelectLocation
from ui.shell.choice import chosen_option, one_of
from ui.shell.page import Page
from ui.shell.reducer import State
from ui.show.drawings import show_map
from ui.show.figures import show_formula, show_snippet, show_source
from ui.words.texts import as_plain, page_texts, quoted_word
from views.paths.edge_estimates import check_estimate, compare_with_estimate, edge_claim
from views.paths.paths_view_model import (
    LEAST_SHOWN,
    HeadMap,
    PathsChoices,
    PathsViewModel,
    effect_size,
    head_of,
    turn_of,
)

KEY = "patching"
_CONE = "paths_cone"
_FEW = 10  # number of passes that run without asking
_HEIGHT = 315  # px: the map with its controls fits on the first screen of a projector
_WAYS = {"all": INPUTS, **{name: (name,) for name in INPUTS}}


def patching(p: Page, row: DeltaGenerator, *, patches: str) -> None:
    """Draw the choice of the swap in ``row``, then the effect of each patch and the largest effect.

    ``patches`` is "tokens" (one vector at one position) or "heads" (one head at all positions).
    """
    shown = choose(p, row, patches=patches)
    places, pair, turn = shown.places, shown.contrast, shown.turn
    name: tuple[Hashable, ...] = ("patching", pair_name(shown), shown.choices)
    if quick := sweeps.is_long(p, len(places)):
        guess = store.get(p.run, (*name, "estimate"), lambda: estimated_shares(pair, turn, [places])[0])
    if waiting := sweeps.waits(p, name, len(places)):
        estimated = _with_shares(shown, guess, is_estimate=True)
        draw(p, estimated)
        _check(p, estimated, name)
    work = partial(recovered_shares, pair, turn, [places])
    shares = measured(p, shown, name, lambda report: work(progress=report)[0], count=len(places))
    if shares is not None:
        draw(p, _with_shares(shown, shares))
        if quick:
            sweeps.say_agreement(p, guess, shares)
    _explain(p, shown, waiting=waiting)


def _with_shares(shown: PathsViewModel, shares: np.ndarray, *, is_estimate: bool = False) -> PathsViewModel:
    return PathsViewModel(shown.found, shown.contrast, shown.turn, shown.choices, shares, is_estimate)


def choose(p: Page, row: DeltaGenerator, *, patches: str) -> PathsViewModel:
    """Draw the swaps and, behind "More", all other choices; return the view model without measurements."""
    with row:
        chips = st.container(width="content")
        more = st.popover(p.text["more"], icon=":material/tune:", key="paths more")
    sentence = second_sentence(p, key="paths corrupted", first=_telling_swap(p), box=more, chips=chips)
    if not sentence.strip():
        p.nothing_to_show(p.text["corrupted_empty"])
    found = experiment_with(p.run, sentence=sentence, keep_answer=True)
    pair: Contrast = store.get(p.run, ("contrast", sentence), lambda: contrast_of(found))
    if not pair.turns:
        p.nothing_to_show(p.text["nothing_asked"])
    with more:
        own = _chosen_turn(p, pair)
        other = _chosen_other(p, pair, own, sentence)
        every_part = patches == "tokens" and choice.toggle(
            p.text["every_part"], key="paths_parts", help=p.text["every_part_help"]
        )
        every_token = False
        if patches == "tokens":
            every_token = choice.toggle(p.text["every_token"], key="paths_tokens", help=p.text["every_token_help"])
            every_token = choice.toggle(p.text["cone"], key=_CONE, help=p.text["cone_help"]) or every_token
    choices = PathsChoices(patches, bool(every_part), every_token, own.row, other)
    turn = store.get(p.run, ("turn", sentence, own.row, other), lambda: turn_of(pair, choices))
    return PathsViewModel(found, pair, turn, choices)


def _telling_swap(p: Page) -> str:
    """Return the swap that changes the page's prediction most clearly, "" if there is none."""
    own = [other for clean, other in ready_pairs(p) if clean == p.sentence]
    if len(own) < 2 or sweeps.is_long(p, _FEW * len(own)):
        return next(iter(own), "")

    def size(other: str) -> float:
        return effect_size(contrast_of(experiment(p.trace, sentence=other, keep_answer=True)))

    return store.get(p.run, "telling swap", lambda: max(own, key=size))


def pair_name(shown: PathsViewModel) -> tuple[str, int, int]:
    """Return the key of one question about one pair in the names of stored results."""
    return shown.found.changed.sentence, shown.turn.row, shown.turn.other


def measured(
    p: Page,
    shown: PathsViewModel,
    name: tuple[Hashable, ...],
    work: Callable[[Callable[[int, int], None]], np.ndarray],
    *,
    count: int,
) -> np.ndarray | None:
    """Return the shares of ``count`` locations, stored as ``name``.

    The result is ``None`` if a long sweep has not been requested yet or was stopped.
    """
    if (known := store.known(p.run, name)) is not None:
        return known
    passes = n_passes(shown.contrast, shown.turn, count)
    if sweeps.waits(p, name, count):
        sweeps.start_button(p, name, p.text["start"].format(passes=passes, places=count))
        return None
    return jobs.result(
        p.run,
        name,
        work,
        saying=lambda done, total: p.text["measuring"].format(done=done, total=total),
        passes=passes,
    )


def _check(p: Page, shown: PathsViewModel, name: tuple[Hashable, ...]) -> None:
    """Measure the locations with the largest estimates, and show both numbers."""
    best = np.argsort(-np.abs(np.nan_to_num(shown.shares)))[: sweeps.CHECKED]
    places = [shown.places[index] for index in best]
    true = store.get(p.run, (*name, "check"), lambda: recovered_shares(shown.contrast, shown.turn, [places])[0])
    sweeps.say_error(
        p, [_place_name(p, shown, place) for place in places], shown.shares[best], true, count=len(shown.places)
    )


def _chosen_turn(p: Page, pair: Contrast) -> Turn:
    """Return the output word that is compared: the first one that changes, or the reader's choice."""
    if len(pair.turns) == 1:
        return pair.turns[0]
    rows = [turn.row for turn in pair.turns]
    names = {turn.row: (display(pair, turn.answer), display(pair, turn.other)) for turn in pair.turns}
    words = [text["turn_option"] for text in page_texts(p.text.name)]
    called = {row: [one.format(row=row, answer=names[row][0], other=names[row][1]) for one in words] for row in rows}
    row = one_of(
        p.text["turn"],
        called,
        pair.first_turn.row,
        key="paths_turn",
        owner=(p.checkpoint.fingerprint, pair.corrupt, tuple(names.items())),
        in_list=True,
        help=p.text["turn_help"],
    )
    return pair.turns[rows.index(row)]


def _chosen_other(p: Page, pair: Contrast, turn: Turn, sentence: str) -> int | None:
    """Return the id of the alternative token that the reader chose, if any."""
    word = choice.text(
        p.text["other"],
        key="paths_other",
        owner=(p.checkpoint.fingerprint, p.sentence, sentence),
        placeholder=display(pair, turn.other),
        help=p.text["other_help"],
    ).strip()
    if not word:
        return None
    chosen = token_of(p.checkpoint, p.sentence, word)
    if chosen == turn.answer:
        raise InputError("The answer and the other word are the same token, {value}.", value=f"“{word}”")
    return chosen


def display(pair: Contrast, id: int) -> str:
    """Return how an output token, or a class, is displayed."""
    config = pair.checkpoint.config
    return config.class_names[id] if config.n_classes else pair.checkpoint.tokenizer.display(id)


def draw(p: Page, shown: PathsViewModel) -> None:
    """Write the result in a sentence, and draw the map with its legend."""
    st.markdown(f"##### {say_swap(p, shown)}")
    st.markdown(_say_strongest(p, shown))
    if shown.is_wide:
        picture = key = st.container()
    else:
        picture, key = st.columns([7, 4], gap="medium")
    with picture:
        _draw_map(p, shown)
    with key:
        _draw_key(p, shown)
    st.caption(f"{_say_hidden(p, shown)}{p.text[f'caption_{shown.choices.patches}']}")
    if (start := _cone_start(p, shown)) is not None:
        _say_cone(p, shown, start)


def _cone_start(p: Page, shown: PathsViewModel) -> Place | None:
    """Return the patch whose cone is outlined: that of the focused vector, if the reader asks for one."""
    if shown.choices.patches != "tokens" or not choice.is_on(_CONE):
        return None
    return shown.patched_at(p.focus.stack, p.focus.layer, p.focus.token)


def _say_cone(p: Page, shown: PathsViewModel, start: Place) -> None:
    reached = int(shown.reached_by(start).sum())
    place = _place_name(p, shown, start)
    st.caption(p.text["cone_says"].format(place=place, reached=whole(reached), total=whole(len(shown.places))))


def _say_hidden(p: Page, shown: PathsViewModel) -> str:
    """Say how many tokens have no column, as the beginning of a paragraph; "" if all have one."""
    hidden = len(shown.column_labels) - len(shown.columns)
    if not hidden:
        return ""
    return p.text["hidden"].format(count=whole(hidden), share=percent(LEAST_SHOWN)) + " "


def say_swap(p: Page, shown: PathsViewModel) -> str:
    """Describe the swap and its effect on the prediction."""
    text = p.text
    name = name_of_image(shown.found.changed.sentence) if p.reads_pictures else ""
    if p.reads_pictures:
        swapped = text["swap_image"].format(name=as_plain(name)) if name else text["swap_more"]
    else:
        swapped = ", ".join(
            text["swap"].format(clean=as_plain(swap.clean), corrupt=as_plain(swap.corrupt)) for swap in shown.swaps[:3]
        )
    (_, before), (_, after) = shown.predictions
    shares = three_digits_alike([before, after])
    typed = shown.found.asked.everywhere and p.checkpoint.config.has_decoder and shown.effect != "lead"
    read, answer, other = text_up_to(shown.found.changed, shown.turn.row), shown.answer, shown.other
    begun = read.rpartition(" ")[2]
    inside = typed and begun.isalpha() and all(part.isalpha() for part in (answer, other))
    if inside:  # the next token continues a word: words are easier to read than their parts
        answer, other, read = begun + answer, begun + other, f"{begun}…"
    at = _filled_token(shown)
    way = "_word" if inside else "_after" if typed else "_at" if at and shown.effect != "lead" else ""
    return text[f"says_{shown.effect}{way}"].format(
        swapped=swapped,
        read=as_plain(read),
        at=_plainly(at),
        answer=_plainly(answer),
        other=_plainly(other),
        clean=signed(shown.turn.clean),
        corrupt=signed(shown.turn.corrupt),
        before=shares[0],
        after=shares[1],
    )


def _filled_token(shown: PathsViewModel) -> str:
    """Return the token where a model that fills in words predicts; "" for the swapped one."""
    config, row = shown.contrast.checkpoint.config, shown.turn.row
    if config.has_decoder or config.n_classes or row in shown.contrast.differing["encoder"]:
        return ""
    return shown.contrast.clean["encoder"].labels[row]


def _plainly(token: str) -> str:
    """Return a token for a sentence, without the dot that stands for its space."""
    return as_plain(token.removeprefix("·") or token)


def _legibly(token: str) -> str:
    """Return a token for a sentence without quotation marks, a punctuation mark by its name."""
    return _plainly(token) if any(map(str.isalnum, token)) else as_plain(quoted_word(token))


def _say_strongest(p: Page, shown: PathsViewModel) -> str:
    """Say how much of the change a single patch undoes."""
    if shown.strongest is None:
        return p.text["no_gap_caption"]
    place, share = shown.strongest, shown.strongest_share
    if place.part == "residual":
        where = p.text["back_residual"].format(**_place_words(p, shown, place, name=_legibly))
    else:
        where = _place_name(p, shown, place)
    one = p.text[f"one_{shown.choices.patches}"].format(place=where)
    key = "undone_about" if shown.is_estimate else "undone_more" if share >= 1.005 else "undone"
    if 0.995 <= share < 1.005 and not shown.is_estimate:
        key = "undone_all"
    return p.text[key].format(one=one, share=percent(share))


def _draw_map(p: Page, shown: PathsViewModel) -> None:
    text, heads = p.text, shown.choices.patches == "heads"
    drawn = list(shown.columns)
    values, grid = shown.values[:, drawn], tuple(tuple(row[column] for column in drawn) for row in shown.grid)
    known, what = np.isfinite(values), "estimate" if shown.is_estimate else "map"
    start = _cone_start(p, shown)
    marked = shown.strongest_cell if start is None else shown.cell_of(start)
    show_map(
        value_map(
            np.where(known, values, 0.0),
            row_labels=[_row_label(p, row) for row in shown.grid],
            column_labels=[shown.column_labels[column] for column in drawn],
            row_title=text["rows_title"],
            column_title=text[
                "columns_heads" if heads else "columns_both" if shown.column_breaks else "columns_tokens"
            ],
            allowed=known,
            limit=shown.limit,
            title=text[f"{what}_{shown.choices.patches}"].format(answer=shown.answer),
            value_name=text[f"{what}_value"],
            phrase=(text["phrase_before"], text["phrase_heads" if heads else "phrase_tokens"]),
            height=_HEIGHT,
            breaks=shown.row_breaks,
            column_breaks=shown.column_breaks,
            selected=None if marked is None else (marked[0], drawn.index(marked[1])),
            outlined=None if start is None else shown.reached_by(start),
            masked_text=text["no_gap"] if shown.strongest is None else text["no_part"],
        ),
        key=KEY,
        means=partial(_open, grid),
    )


def _row_label(p: Page, row: tuple[Place | None, ...]) -> str:
    place = next(place for place in row if place is not None)
    if place.part in HEADS:
        return p.text["edge_row"].format(what=_attention_name(p, head_of(place)), layer=place.layer)
    return p.text[f"row_{place.part}"].format(layer=place.layer)


def _draw_key(p: Page, shown: PathsViewModel) -> None:
    """Draw the explanation of the cells and their colours, and say which token predicts the word."""
    text, values = p.text, shown.values[:, list(shown.columns)]
    keys = ["key_scale"]
    keys += ["key_more"] if np.nanmax(values, initial=0.0) > 1.005 else []
    keys += ["key_negative"] if np.nanmin(values, initial=0.0) < -0.05 else []
    names = {"answer": _plainly(shown.answer), "other": _plainly(shown.other)}
    st.markdown(text[f"key_{shown.choices.patches}"])
    st.markdown(" ".join(text[key] for key in keys).format(**names))
    if (read := shown.reading_token) is not None:
        arrived = shown.arrived_share
        key = "reading" if arrived is None else "reading_arrived"
        layer = shown.trace.n_layers("decoder") - 1
        share = None if arrived is None else percent(arrived)
        st.markdown(text[key].format(token=_legibly(read), layer=layer, share=share, **names))
    if note := uncertainty_note(p):
        st.markdown(note)


def _place_name(p: Page, shown: PathsViewModel, place: Place) -> str:
    return p.text[f"place_{place.part}"].format(**_place_words(p, shown, place))


def _place_words(
    p: Page, shown: PathsViewModel, place: Place, *, name: Callable[[str], str] = _plainly
) -> dict[str, object]:
    """Return the layer, the token or head, and the stack of a location, for a sentence."""
    labels = shown.contrast.tokens(place.stack, shown.turn).labels
    column = str(place.index) if place.part in HEADS else name(labels[place.index])
    if p.reads_pictures and place.part not in HEADS and place.index == 0:
        column = p.text["class_token"]
    several = len(shown.contrast.clean) > 1
    return {"layer": place.layer, "column": column, "stack": p.text[f"in_{place.stack}"] if several else ""}


def _open(grid: tuple[tuple[Place | None, ...], ...], _state: State, cell: SelectCell) -> Actions:
    """Return the actions of a click: a head opens on Attention, a vector selects layer and token."""
    place = grid[cell.query][cell.key]
    if place is None:
        return ()
    if place.part in HEADS:
        return (OpenPage("attention", SelectLocation(*head_of(place))),)
    kind = "cross" if place.part == "cross_attention" else "self"
    return (SelectLocation(place.stack, kind, place.layer, token=place.index),)


def _explain(p: Page, shown: PathsViewModel, *, waiting: bool) -> None:
    """Draw the formula with its sources and what a share does not show, and the code."""
    text = p.text
    with st.expander(text["how"], icon=":material/function:"):
        show_formula(
            text["patching_formula"],
            caption=text["patching_shapes"].format(
                answer=as_plain(shown.answer), other=as_plain(shown.other), count=len(shown.places)
            ),
        )
        st.caption(text["sufficient"])
    measure = "estimated_shares" if waiting else "recovered_shares"
    module = "attribution_patching" if waiting else "activation_patching"
    show_snippet(
        "patching",
        f"{_pair_in_python(p, shown)}"
        f"from transformer.interventions.{module} import {measure}\n"
        "from views.paths.paths_view_model import patched_places\n\n"
        "places = [place for row in patched_places(contrast, turn, choices) for place in row if place is not None]\n"
        f"for place, share in zip(places, {measure}(contrast, turn, [places])[0]):\n"
        "    print(place, share.round(2))\n",
    )
    show_source(contrast_of, estimated_shares if waiting else recovered_shares, patched_differences)


def _pair_in_python(p: Page, shown: PathsViewModel) -> str:
    """Return Python code that defines ``contrast``, ``choices`` and ``turn``."""
    own = shown.choices
    arguments = [repr(own.patches), *(["every_part=True"] if own.every_part else []), f"row={own.row}"]
    arguments += [] if own.other is None else [f"other={own.other}"]
    return (
        f"{p.preamble}\nfrom transformer.interventions.activation_patching import contrast\n"
        "from views.paths.paths_view_model import PathsChoices, turn_of\n\n"
        f"contrast = contrast(trace, {shown.found.changed.sentence!r})\n"
        f"choices = PathsChoices({', '.join(arguments)})\n"
        "turn = turn_of(contrast, choices)\n"
    )


def head_to_head(p: Page, row: DeltaGenerator) -> None:
    """Draw the choice of the swap in ``row``, then the path patching of the focused head."""
    shown = choose(p, row, patches="heads")
    focus, text = p.focus, p.text
    receiver = Head(focus.stack, focus.kind, focus.layer, focus.head)
    way = chosen_option(text, "ear", list(_WAYS), key="paths_ear", help=text["ear_help"])
    senders, name = senders_of(shown.contrast, receiver), head_in_full(receiver)
    if not senders:
        st.info(text["edges_first"].format(head=as_plain(name)), icon=":material/info:")
        _offer_later(p, shown.contrast)
        p.finish()
    stored: tuple[Hashable, ...] = ("path patching", pair_name(shown), receiver, way)
    names, inputs = [head_in_full(sender) for sender in senders], _WAYS[way]
    guess = store.get(
        p.run,
        (*stored, "estimate"),
        lambda: estimated_edges(shown.contrast, shown.turn, receiver, senders, inputs=inputs),
    )
    if sweeps.waits(p, stored, len(senders)):
        _draw_edges(p, shown, _edge_map(senders, guess), name, is_estimate=True)
        check_estimate(p, shown, receiver, senders, guess, names=names, inputs=inputs, name=(*stored, "check"))
    shares = measured(
        p,
        shown,
        stored,
        lambda report: path_patching(shown.contrast, shown.turn, receiver, senders, inputs=inputs, progress=report),
        count=len(senders),
    )
    if shares is not None:
        _draw_edges(p, shown, _edge_map(senders, shares), name)
        compare_with_estimate(p, shares, guess, names=names)
    st.caption(text["edges_source"])
    show_snippet(
        "head to head",
        f"{_pair_in_python(p, shown)}"
        "from transformer.interventions.edge_attribution import estimated_edges\n"
        "from transformer.interventions.path_patching import path_patching, senders_of\n"
        "from transformer.runs.head_places import Head\n\n"
        f'receiver = Head("{receiver.stack}", "{receiver.kind}", {receiver.layer}, {receiver.head})\n'
        f"shares = path_patching(contrast, turn, receiver, inputs={inputs})\n"
        f"estimates = estimated_edges(contrast, turn, receiver, inputs={inputs})  # one backward pass\n"
        "for sender, share, estimate in zip(senders_of(contrast, receiver), shares, estimates):\n"
        "    print(sender, share, estimate)\n",
    )
    show_source(path_patching, estimated_edges)


def _offer_later(p: Page, pair: Contrast) -> None:
    """Offer the same head of the last attention layer, if that layer has earlier heads."""
    stack, kind = p.trace.attention_kinds()[-1]
    head = min(p.focus.head, p.checkpoint.config.heads_in(stack) - 1)
    last = Head(stack, kind, p.trace.n_layers(stack) - 1, head)
    if senders_of(pair, last) and st.button(p.text["edges_later"].format(head=as_plain(head_in_full(last)))):
        p.set_focus(**last._asdict())


def _edge_map(senders: Sequence[Head], shares: np.ndarray) -> HeadMap:
    return HeadMap.of(dict(zip(senders, shares.tolist(), strict=True)))


def _draw_edges(p: Page, shown: PathsViewModel, found: HeadMap, receiver: str, *, is_estimate: bool = False) -> None:
    text = p.text
    if not found.rows:
        st.caption(text["no_gap_caption"])
        return
    best = found.strongest
    names = {"sender": head_in_full(best), "receiver": receiver, "answer": shown.answer}
    st.markdown(edge_claim(found.number(best), text, is_estimate=is_estimate, **names))
    draw_heads(
        p,
        found,
        key="path patching",
        title=text["edges_map_estimate" if is_estimate else "edges_map"].format(receiver=receiver),
        value_name=text["estimate_value" if is_estimate else "map_value"],
        phrase=text["edges_phrase"],
        masked_text=text["no_gap"],
        height=250,
    )


def draw_heads(
    p: Page, found: HeadMap, *, key: str, title: str, value_name: str, phrase: str, masked_text: str, height: int = 300
) -> None:
    """Draw one row per layer of each kind of attention, one column per head; a click opens the head."""
    known = np.isfinite(found.values)
    show_map(
        value_map(
            np.where(known, found.values, 0.0),
            row_labels=[
                p.text["edge_row"].format(what=_attention_name(p, Head(*row, 0)), layer=row[2]) for row in found.rows
            ],
            column_labels=[str(head) for head in range(found.values.shape[1])],
            row_title=p.text["rows_title"],
            column_title=p.text["columns_heads"],
            allowed=known,
            title=title,
            value_name=value_name,
            phrase=(phrase, p.text["phrase_heads"]),
            height=height,
            masked_text=masked_text,
        ),
        key=key,
        means=partial(_open_head, found.rows, frozenset(zip(*map(np.ndarray.tolist, np.nonzero(known)), strict=True))),
    )


def _open_head(
    rows: tuple[tuple[str, str, int], ...], known: frozenset[tuple[int, int]], _state: State, cell: SelectCell
) -> Actions:
    if (cell.query, cell.key) not in known:
        return ()
    return (OpenPage("attention", SelectLocation(*rows[cell.query], cell.key)),)


def _attention_name(p: Page, head: Head) -> str:
    return p.text[f"from_{head.stack}_{head.kind}"]
