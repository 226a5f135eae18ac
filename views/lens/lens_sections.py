"""The sections of Lens: every layer read out as if it were the last, and a logit as a sum of parts."""

import re
from functools import partial

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from charts.canvas.value_map import value_map
from charts.figures.bars import Bars, bars
from charts.figures.curves import Curve, curves
from charts.figures.lens_grid import COLOURS, lens_grid, middle_of, narrow_part, room_of
from charts.figures.waterfall import waterfall
from charts.toolkit import style
from charts.toolkit.axes import Axis
from charts.toolkit.numbers import number
from charts.toolkit.style import exact, label_axis, signed
from charts.toolkit.words import localize, say
from transformer.attribution.direct_logit_attribution import Attribution, attribute, strongest_sources
from transformer.errors import InputError
from transformer.guests.read_out import read_out_of
from transformer.interventions.direct_effects import RemovedParts, remove_parts, strongest_removable
from transformer.interventions.experiment import experiment
from transformer.layer_norm import RMSNorm
from transformer.layers.residual_stream import Part, label_in_sentence
from transformer.predictions.lens import (
    Column,
    Lens,
    candidate_words,
    decided_step,
    logit_lens,
    n_columns,
    next_in_text,
    word_probabilities,
)
from transformer.predictions.target import lens_stack, shown_word
from ui.page.page import Page
from ui.sections.uncertain_output import uncertainty_note
from ui.sections.word_swaps import ready_pairs, suggested_sentence, take_pair
from ui.shell import choice, page_state
from ui.shell.choice import labels
from ui.shell.focus import FIRST_CHOSEN, is_presenting
from ui.shell.navigation import go_to
from ui.shell.offers import offer
from ui.show.drawings import Cell, show_map
from ui.show.figures import show_figure
from ui.words.texts import Marked, as_plain, code, common, listed, named_word, problem_text
from views.opening_tokens import predicting_token

MAX_COLUMNS = 10  # of the grid at a time: words fit into their cells on a small laptop
READ_COLUMNS = 40  # read out at a time, so that a neighbouring position is there at once
MOST_PARTS = 9  # with a bar of their own
MOST_REMOVED = 12
MOST_SOURCES = 2000
_SECOND = "lens_second"  # the second sentence, in the address
_ANSWERS = 3  # how many responding parts are named for each removed part


def stack_of(p: Page) -> str:
    """Return the stack whose residual stream is read out."""
    return lens_stack(p.checkpoint)


def place_of(p: Page) -> tuple[str, int]:
    """Return the stack that the lens reads, and the token in focus, or another if the lens lacks it."""
    stack, focus = stack_of(p), p.focus
    page_state.belongs_to(FIRST_CHOSEN, (focus.checkpoint, focus.sentence))
    if focus.stack == stack and (focus.token > 0 or choice.is_on(FIRST_CHOSEN)):
        return stack, focus.token
    return stack, predicting_token(p.trace)


def choose_view(p: Page) -> tuple[str, DeltaGenerator]:
    """Draw the choice of the page's content; return it, and the row for all other choices."""
    with (row := st.container(horizontal=True, vertical_alignment="center")):
        view = p.option("view", ["layers", "author"], key="lens_view", label_visibility="collapsed")
    return view, row


def _follows_text(p: Page) -> bool:
    """Draw the choice of predicted or actual word if they differ; return whether it is the latter."""
    look = {"key": "lens_follow", "help": p.text["follow_help"]}
    return bool(next_in_text(p.trace)) and p.option("follow", ["own", "came"], **look) == "came"


# ---- the readout ----------------------------------------------------------------------------------------------------


def readout(p: Page, row: DeltaGenerator) -> None:
    """Draw the grid below a sentence about one column, how words compete there, and the formula."""
    position, count = place_of(p)[1], n_columns(p.trace)
    if p.checkpoint.config.n_classes and position:
        position += 1  # a classifier's whole sentence, shown as ``<s>``, is the first column
    first = min(max(0, position - MAX_COLUMNS // 2), max(0, count - MAX_COLUMNS))
    with row, st.popover(p.text["more"], icon=":material/tune:", key="lens more"):
        sublayers = p.option("rows", ["layers", "sublayers"], key="lens_rows") == "sublayers"
        colour = p.option("colour", list(COLOURS), key="lens_colour", help=p.text["colour_help"])
        follow = next_in_text(p.trace) if _follows_text(p) else ()
        if (last := count - MAX_COLUMNS) > 0:
            owner = (p.trace.tokens(stack_of(p)).ids, position)
            first = int(choice.slider(p.text["window"], 0, last, first, key="lens_first", owner=owner))
    begin = min(max(0, first - (READ_COLUMNS - MAX_COLUMNS) // 2), max(0, count - READ_COLUMNS))
    read = p.calc(
        logit_lens, p.trace, sublayers=sublayers, follow=follow[begin : begin + READ_COLUMNS] or None,
        columns=(begin, begin + READ_COLUMNS), spread=colour == "divergence", name="lens", wait="wait.lens",
    )  # fmt: skip
    lens = read.part(first - begin, first - begin + MAX_COLUMNS)
    is_shown = 0 <= position - lens.first < len(lens.read)
    column = p.calc(read.column, position, name="column", shows=("",)) if is_shown else None
    if column is not None:
        st.markdown(f"{_say_column(p, lens, column, position)}{uncertainty_note(p)}")
    _draw_grid(p, lens, position - lens.first if is_shown else None, colour=colour)
    if column is not None:
        _follow_word(p, read, position)
    _explain(p, lens)
    p.code(decided_step)


def _say_column(p: Page, lens: Lens, column: Column, position: int) -> str:
    """Show the prediction at one position, its probability, and the step from which it leads."""
    if lens.of_classes:
        key = "place_alone" if position else "place_whole"
    else:
        key = "place_never" if column.top_from < 0 else "place" if lens.stack == "decoder" else "place_masked"
    said = p.md(
        key, read=named_word(localize(column.read)), word=named_word(column.word), probability=column.probability,
        runner_up=named_word(column.runner_up),
    )  # fmt: skip
    if key in ("place_alone", "place_never"):
        return said
    if column.top_from == 0:
        return f"{said} {p.md('since_embedding')}"
    earlier = listed(Marked(f"**{as_plain(named_word(word))}**") for word in column.earlier)
    step = localize(label_in_sentence(lens.steps[column.top_from]))
    since = "since_last" if column.top_from == len(lens.steps) - 1 else "since"
    return f"{said} {p.md(since, step=step, earlier=earlier)}"


def _draw_grid(p: Page, lens: Lens, selected: int | None, *, colour: str) -> None:
    late, never = int((lens.decided == len(lens.steps) - 1).sum()), int((lens.decided < 0).sum())
    legend = "legend" if colour != "probability" else "legend_above" if never and not lens.of_classes else "legend_top"
    p.say(legend, small=True)
    caption, total = [p.md("grid_caption")], len(lens.read)
    if never:
        caption.append(p.md("top_never", count=never, total=total))
    elif not lens.of_classes:
        caption.append(p.md("top" if late else "top_none", count=late, total=total))
    if (count := n_columns(p.trace)) > total:
        caption.append(p.md("window_caption", first=lens.first, last=lens.first + total - 1, count=count))
    part, column = narrow_part(lens, selected or 0)
    column = None if selected is None else column
    show_figure(
        lens_grid(lens, colour=colour, selected=selected),
        name="logit-lens",
        caption=" ".join(caption),
        alt=p.text["grid_alt"],
        room=room_of(lens),
        about=0 if selected is None else middle_of(lens, selected),
        narrow=lens_grid(part, colour=colour, selected=column, is_narrow=True),
    )


def _follow_word(p: Page, read: Lens, position: int) -> None:
    """Draw, if it is unfolded, the probabilities of the competing words at one position."""
    with choice.collapsible(p.text["course"], icon=":material/show_chart:", key="lens_course") as opened:
        if not opened.open:
            return
        course = p.calc(word_probabilities, p.trace, read, position, name="course", shows=(".words",))
        names = [say("lens.final_token", token="{}"), say("lens.runner_up", token="{}")]
        names += [say("lens.earlier_first", token="{}")] * (len(course.words) - 2)
        colours = [style.CHOSEN, style.BAR, *(style.CATEGORICAL[place] for place in (1, 2, 3, 4, 7))]
        drawn = []
        for place, (name, word, values) in enumerate(zip(names, course.words, course.probabilities, strict=False)):
            label = style.escape(word)
            drawn.append(
                Curve(
                    name.replace("{}", label),
                    values,
                    (say("lens.token_after", token=label, place="%{x}"), exact("y")),
                    colour=colours[place % len(colours)],
                    dash="solid" if place < 2 else "dot",
                    width=3 if place else 5,
                    marker=7 if place else 10,
                )
            )
        steps, reads = list(map(localize, read.steps)), say("lens.read_after")
        figure = curves(
            drawn, x=range(len(steps)), across=reads, up=say("names.probability"), height=360, first_on_top=True,
            xaxis=label_axis(steps, title=reads), yaxis={"range": [-0.03, 1.03]},
        )  # fmt: skip
        key = "course_caption_class" if read.of_classes else "course_caption"
        caption = p.md(key, stack=common(f"focus.{read.stack}"))
        show_figure(figure, name="word-course", caption=caption, alt=p.text["course_alt"])


def _explain(p: Page, lens: Lens) -> None:
    """Draw the formula by which a row is read out, with its limits."""
    config, model = p.checkpoint.config, p.checkpoint.model
    norm, found = type(model.get_submodule(lens.stack).final_norm).__name__, read_out_of(model, lens.stack)
    normed = rf"\text{{{norm}}}_{{\text{{final}}}}(x_k)" if lens.final_norm else "x_k"
    inner = rf"\text{{head}}({normed})" if found.has_own_layer else rf"W\,{normed}"
    notes = [p.md("pre", norm=norm) if lens.final_norm else p.md("post")]
    if not lens.final_norm:
        notes.append(p.md("post_normed" if f"{lens.stack}.embedding.norm.output" in p.trace else "post_bare"))
    if lens.of_classes:
        notes.append(p.md("classes_first" if found.kind == "first" else "classes"))
    if found.kind == "token head":
        notes.append(p.md("token_head"))
    if found.cap is not None:
        notes.append(p.md("cap", cap=found.cap))
    if lens.stack == "decoder" and (never := p.checkpoint.framing.never):
        names = listed(code(p.checkpoint.tokenizer.display(id)) for id in never)
        notes.append(p.md("every_word", names=names))
    if len(p.trace.stacks) > 1:
        notes.append(p.md("encoder"))
    p.say("caution", small=True)
    with st.expander(p.text["how"], icon=":material/function:"):
        p.formula(
            rf"p_k = \text{{softmax}}\big({inner}\big)", "formula_caption", steps=len(lens.steps),
            tokens=len(p.trace.tokens(lens.stack)), width=config.d_model,
            out=config.n_classes or config.vocabulary_size,
        )  # fmt: skip
        st.markdown(" ".join((*notes, p.md("source"))))


# ---- the logit as a sum ---------------------------------------------------------------------------------------------


def author(p: Page, row: DeltaGenerator) -> None:
    """Draw the choice of the word, the contributions of the parts, and the effects of removing them."""
    position = None if p.checkpoint.config.n_classes else place_of(p)[1]
    if position is not None and not p.trace.target and p.trace.source[position].is_padding:
        p.nothing_to_show(p.text["author_padding"])
    token, against = _choose_words(p, row, position)
    found = p.calc(
        attribute, p.trace, position, token=token, against=against, name="found",
        shows=(".total", ".logit", ".deviation", ".strongest(10)"),
    )  # fmt: skip
    word = shown_word(p.checkpoint, token)
    word = word if against is None else f"{word} − {shown_word(p.checkpoint, against)}"
    strongest = found.strongest(1)[0]
    p.say(
        "author_class" if position is None else f"author_{found.target.stack}",
        read="" if position is None else p.trace.tokens(found.target.stack).displays[position],
        position=str(position), word=word, logit=found.logit, count=len(found.parts), deviation=found.deviation,
        part=localize(label_in_sentence(strongest.label)), value=found.of(strongest),
    )  # fmt: skip
    left, right = st.columns([6, 5], gap="medium")
    with left:
        bars = [part for part in found.parts if part in found.strongest(MOST_PARTS)]
        figure = waterfall(
            [found.of(part) for part in bars], labels=[localize(part.label) for part in bars], total=found.total,
            n_others=len(found.parts) - len(bars), of=word,
        )  # fmt: skip
        show_figure(figure, name="who-wrote-it", alt=p.words("author_alt", word=word))
    with right:
        _draw_heads(p, found, word)
    sections = ("measured", "sources") if found.gated else ("sources", "measured")
    if p.option("section", sections, key="lens_section", wrap=True) == "measured":
        _measured(p, found, word)
    else:
        sources = p.calc(strongest_sources, p.trace, found, most=MOST_SOURCES, name="sources", shows=("[:10]",))
        rows = [
            {"word": one.display, "head": localize(one.part.label), "weight": one.weight, "value": one.value}
            for one in sources
        ]
        p.table(rows, name="which-word-through-which-head", caption=p.md("author_sources_caption"), height=320)
    st.caption(f"{p.md('author_fixed')} {p.md('author_caution')}")
    with st.expander(p.text["author_how"], icon=":material/function:"):
        rms = isinstance(p.checkpoint.model.get_submodule(found.target.stack).final_norm, RMSNorm)
        latex = p.text["author_formula"].replace("%READ%", p.text["author_read_rms" if rms else "author_read"])
        n_rows = len(found.target.rows)
        sizes = {"count": len(found.parts), "width": p.checkpoint.config.d_model, "rows": n_rows}
        p.formula(latex, "author_formula_caption", **sizes)
        alone = found.target.against is None and not p.checkpoint.config.n_classes
        notes = [p.md("author_alone")] if alone else []
        notes += [p.md("author_cap", cap=found.cap)] if found.cap is not None else []
        notes += [p.md("author_gated")] if found.gated else []
        notes += [p.md("author_mean", count=n_rows)] if n_rows > 1 else []
        st.markdown(" ".join((*notes, p.md("author_source"))))
    p.code()


def _choose_words(p: Page, row: DeltaGenerator, position: int | None) -> tuple[int, int | None]:
    """Draw the word whose logit is decomposed, and the word it is compared with, if any; return their ids."""
    with row:
        from_text = _follows_text(p) and position is not None
    known = candidate_words(p.trace, position, next_in_text(p.trace)[position] if from_text else None)
    words = list(known)
    owner = (p.trace.tokens(place_of(p)[0]).displays, position, words[:2])
    more = {"owner": owner, "accept_new_options": position is not None, "width": 190}
    with st.container(horizontal=True):
        word = choice.select(p.text["word"], words, words[0], key="lens_word", help=p.text["word_help"], **more)
        token = _id(p, word, known)
        token = known[words[0]] if token is None else token
        others = [label for label, id in known.items() if id != token]
        more |= {"placeholder": p.text["against_placeholder"], "help": p.text["against_help"]}
        against = _id(p, choice.select(p.text["against"], others, key="lens_against", **more), known)
    return token, None if against == token else against


def _id(p: Page, wanted: str | None, known: dict[str, int]) -> int | None:
    """Return the id of a chosen word, or of the first token of a typed one.

    A word can be typed as it is or in its displayed form, with ``·`` for the preceding space.
    """
    if wanted is None or wanted in known:
        return known.get(wanted)
    return next(iter(p.word_ids(wanted.strip().removeprefix("·"))), None)


def _draw_heads(p: Page, found: Attribution, word: str) -> None:
    """Draw layers × heads and feed-forward layers as a map, whose cells open the part's page."""
    names = {"self_attention": "lens.self_head", "cross_attention": "lens.cross_head", "feed_forward": "names.ffn"}
    kinds = [kind for kind in names if Part(kind, 0, 0) in found.parts or kind == "feed_forward"]
    tables = {kind: found.table(kind) for kind in kinds}
    columns = [
        Part(kind, 0, head if kind != "feed_forward" else -1) for kind in kinds for head in range(tables[kind].shape[1])
    ]
    values = np.concatenate(list(tables.values()), axis=1)
    drawn = value_map(
        values,
        row_labels=[say("names.numbered_layer", layer=layer) for layer in range(len(values))],
        column_labels=[say(names[part.kind], head=part.head) for part in columns],
        row_title="layer",
        column_title="head",
        title=p.words("author_heads", word=word),
        value_name=say("lens.logits"),
        height=300,
    )
    click = partial(_open, tuple(columns), found.target.stack, found.target.position or 0)
    show_map(drawn, key="lens heads", on_click=click)
    p.say("author_heads_caption" if "cross_attention" in kinds else "author_heads_caption_self", small=True)


def _open(columns: tuple[Part, ...], stack: str, token: int, cell: Cell) -> None:
    part = columns[cell.key]
    if part.head < 0:
        go_to("feed_forward", stack=stack, layer=cell.query, token=token)
    kind = part.kind.removesuffix("_attention")
    go_to("attention", stack=stack, kind=kind, layer=cell.query, head=part.head, token=token)


def _second_sentence(p: Page) -> str:
    """Draw a box for a second sentence and a row of prepared pairs; return what was typed or chosen."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        typed = choice.text(
            p.text["second"], suggested_sentence(p), key=_SECOND, owner=(p.checkpoint.fingerprint, p.sentence),
            help=p.text["second_help"], width=330, label_visibility=labels(),
        )  # fmt: skip
        pairs = {_name_of_pair(p, *pair): pair for pair in ready_pairs(p)}
        if len(pairs) > 1:
            here = next((label for label, pair in pairs.items() if pair == (p.sentence, typed)), None)
            more = {"take": partial(take_pair, _SECOND, pairs), "show_label": not is_presenting()}
            offer(p.text["pairs"], list(pairs), key=f"{_SECOND} pair", chosen=here, **more)
    return typed.strip()


def _name_of_pair(p: Page, clean: str, corrupt: str) -> str:
    """Return "cat → dog", marked if they are of another sentence."""
    both = [(a, b) for a, b in zip(re.findall(r"\w+", clean), re.findall(r"\w+", corrupt), strict=False) if a != b]
    changed = f"{both[0][0]} → {both[0][1]}" if both else corrupt
    return changed if clean == p.sentence else p.words("other_sentence", swap=changed)


def _measured(p: Page, found: Attribution, word: str) -> None:
    """Draw the bars, the rank correlation, and the largest compensation by later parts."""
    pair, second = None, _second_sentence(p)
    if second:
        try:
            pair = p.calc(experiment, p.trace, sentence=second, keep_answer=True, name="second")
        except InputError as error:  # the other measures need no second sentence
            st.warning(as_plain(problem_text(error)), icon=":material/edit:")
    more = {} if pair is None else {"second": pair}
    removed = p.calc(strongest_removable, found, MOST_REMOVED, name="parts")
    effects = p.calc(
        remove_parts, p.trace, found, removed, **more, name="effects", slow=True, wait="wait.trust",
        shows=(".added", ".zero"),
    )  # fmt: skip
    if effects is None:
        return
    _say_effects(p, effects)
    labels = [localize(part.label) for part in effects.parts]
    groups = [
        (say("lens.added_everything_else_held_fixed"), effects.added, style.MASKED),
        (say("lens.lost_without"), effects.zero, style.CHOSEN),
        (say("lens.lost_with_mean"), effects.mean, style.BAR),
    ]
    if effects.patched is not None:
        groups.append((say("lens.lost_with_second"), effects.patched, style.CATEGORICAL[2]))
    across = say("lens.word_logit", word=style.escape(word))
    caption = p.md("measured_caption" if pair is None else "measured_caption_patched")
    drawn = [Bars(values, f"%{{y}}<br>{name}", name, colour, texts=()) for name, values, colour in groups]
    figure = bars(drawn, rows=Axis(say("names.part"), labels), across=across)
    show_figure(figure, name="added-and-measured", caption=caption, alt=p.text["measured_alt"])
    rows = []
    for place, label in enumerate(labels):
        row = {"part": label, "added": effects.added[place], "zero": effects.zero[place], "mean": effects.mean[place]}
        row |= {} if effects.patched is None else {"patched": effects.patched[place]}
        answers = [f"{localize(part.label)} {signed(change)}" for part, change in effects.answers(place)[:_ANSWERS]]
        rows.append(row | {"answers": ", ".join(answers)})
    p.table(rows, name="removed-parts", caption=p.md("measured_table_caption"))


def _say_effects(p: Page, effects: RemovedParts) -> None:
    """Show the rank correlation, the part whose numbers differ most, and what compensated for it."""
    gap = effects.added - effects.zero  # what all other parts contribute in addition without it
    place = int(np.argmax(np.abs(gap)))
    added, lost = effects.added[place], effects.zero[place]
    is_repaired = (abs(lost) < abs(added) and lost * added >= 0) or lost * added < 0
    said = p.md(
        "measured_said", count=len(effects.parts), added=added, lost=lost,
        agreement=number(f"{effects.agreement:.2f}") if np.isfinite(effects.agreement) else "–",
        part=localize(label_in_sentence(effects.parts[place].label)),
    )  # fmt: skip
    answers = effects.answers(place)[:_ANSWERS]
    who = listed(f"{localize(label_in_sentence(part.label))} ({signed(change)})" for part, change in answers)
    key = "measured_norm" if not answers else "measured_repaired" if is_repaired else "measured_built"
    st.markdown(f"{said} {p.md(key, change=gap[place], who=who)}")
