"""The readout on the Lens page: its choices and the grid with its sentences."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from charts.toolkit.numbers import whole
from charts.toolkit.style import three_digits
from charts.toolkit.words import localize
from transformer.guests.output_heads import TokenHead
from transformer.layers.residual_stream import label_in_sentence
from transformer.models import FirstTokenClassifier
from transformer.predictions.lens import Lens, decided_step, lens_stack, logit_lens
from ui.compute.store import store
from ui.lab.uncertain_output import uncertainty_note
from ui.page.page import Page
from ui.shell import choice, page_state
from ui.shell.choice import chosen_option
from ui.shell.focus import FIRST_CHOSEN
from ui.show.figures import show_figure, show_formula, show_snippet, show_source
from ui.words.texts import as_plain, common, in_code
from views.lens.lens_figures import (
    COLOURS,
    lens_grid,
    middle_of,
    narrow_part,
    room_of,
    word_probabilities,
)
from views.lens.lens_view_model import (
    MAX_COLUMNS,
    LensChoices,
    LensViewModel,
    first_column,
    first_read,
    ids_that_came,
    lens_view_model,
    n_columns,
    position_of,
    read_lens,
)
from views.view_models import predicting_token

GRID = "logit-lens"


def stack_of(p: Page) -> str:
    """Return the stack whose residual stream is read out."""
    return lens_stack(p.checkpoint)


def place_of(p: Page) -> tuple[str, int]:
    """Return the stack that the lens reads, and the token in focus, or another if the lens lacks it."""
    stack, focus = stack_of(p), p.focus
    if focus.stack == stack and (focus.token > 0 or _first_chosen(p)):
        return stack, focus.token
    return stack, predicting_token(p.trace)


def _first_chosen(p: Page) -> bool:
    """Whether the reader has clicked the first token."""
    page_state.belongs_to(FIRST_CHOSEN, (p.focus.checkpoint, p.focus.sentence))
    return choice.is_on(FIRST_CHOSEN)


def choose(p: Page, name: str, options: list[str], **more: object) -> str:
    """Draw a row of buttons whose choice is in the address; return it."""
    return chosen_option(p.text, name, options, key=f"lens_{name}", **more)


def choose_view(p: Page) -> tuple[str, DeltaGenerator]:
    """Draw the choice of the page's content; return it, and the row for all other choices."""
    with (row := st.container(horizontal=True, vertical_alignment="center")):
        view = choose(p, "view", ["layers", "author"], label_visibility="collapsed")
    return view, row


def choose_follow(p: Page) -> bool:
    """Draw the choice of predicted or actual word if they differ; return whether it is the latter."""
    options = ["own", "came"]
    return bool(ids_that_came(p.trace)) and choose(p, "follow", options, help=p.text["follow_help"]) == "came"


def choose_readout(p: Page, row: DeltaGenerator) -> LensViewModel:
    """Draw the choice of rows, colour and followed word under "More" in ``row``; return the readout."""
    position = position_of(p.trace, place_of(p)[1])
    with row, st.popover(p.text["more"], icon=":material/tune:", key="lens more"):
        sublayers = choose(p, "rows", ["layers", "sublayers"]) == "sublayers"
        colour = choose(p, "colour", list(COLOURS), help=p.text["colour_help"])
        came = choose_follow(p)
        first = first_column(p.trace, position)
        if (last := n_columns(p.trace) - MAX_COLUMNS) > 0:
            owner = (p.trace.tokens(stack_of(p)).ids, position)
            first = int(choice.slider(p.text["window"], 0, last, first, key="lens_first", owner=owner))
    choices = LensChoices(sublayers, colour, came, first)
    return lens_view_model(p.trace, position, choices, lens=_lens(p, choices, position))


def _lens(p: Page, choices: LensChoices, position: int) -> Lens:
    first = first_read(p.trace, choices, position)
    key = (choices.sublayers, choices.came, first, choices.colour == "divergence")
    return store.get(p.run, ("lens", *key), lambda: read_lens(p.trace, choices, position), wait="wait.lens")


def draw(p: Page, shown: LensViewModel) -> None:
    """Draw the grid, below a sentence about one of its columns."""
    text, lens = p.text, shown.lens
    if shown.selected is not None:
        st.markdown(_say_place(p, shown) + uncertainty_note(p))
    st.caption(text["legend"].format(colour=_say_colour(p, shown)))
    window = ""
    if (count := n_columns(p.trace)) > len(lens.read):
        last = lens.first + len(lens.read) - 1
        window = " " + text["window_caption"].format(first=lens.first, last=last, count=count)
    part, column = narrow_part(lens, shown.selected or 0)
    show_figure(
        lens_grid(lens, colour=shown.choices.colour, selected=shown.selected),
        name=GRID,
        caption=f"{text['grid_caption']} {_say_counts(p, shown)}{window}",
        alt=text["grid_alt"],
        room=room_of(lens),
        about=0 if shown.selected is None else middle_of(lens, shown.selected),
        narrow=lens_grid(
            part, colour=shown.choices.colour, selected=None if shown.selected is None else column, is_narrow=True
        ),
    )


def _say_colour(p: Page, shown: LensViewModel) -> str:
    """Say whose probability the colour shows; the bar names the other measures."""
    if shown.choices.colour != "probability":
        return ""
    return p.text["legend_above" if shown.n_never and not shown.lens.of_classes else "legend_top"]


def _say_counts(p: Page, shown: LensViewModel) -> str:
    """Say in how many columns the top row changes the prediction, or does not have the followed word."""
    if shown.lens.of_classes and not shown.n_never:
        return ""
    if shown.n_never:
        key, count = "top_never", shown.n_never
    else:
        key, count = "top" if shown.n_late else "top_none", shown.n_late
    return p.text[key].format(count=count, total=len(shown.lens.read))


def _say_place(p: Page, shown: LensViewModel) -> str:
    """Show the prediction at one position, its probability, and the step from which it leads."""
    if shown.lens.of_classes:
        key = "place_whole" if shown.is_whole else "place_alone"
    else:
        key = "place_never" if shown.top_from < 0 else "place" if shown.lens.stack == "decoder" else "place_masked"
    said = p.text[key].format(
        read=_plainly(localize(shown.read)),
        word=_plainly(shown.word),
        probability=three_digits(shown.probability),
        runner_up=_plainly(shown.runner_up),
    )
    return said if key in ("place_alone", "place_never") else f"{said} {_say_since_when(p, shown)}"


def _say_since_when(p: Page, shown: LensViewModel) -> str:
    """Show from which step the word is on top, and what would be predicted before."""
    if shown.top_from == 0:
        return p.text["since_embedding"]
    last = shown.top_from == len(shown.steps) - 1
    return p.text["since_last" if last else "since"].format(
        step=as_plain(localize(label_in_sentence(shown.steps[shown.top_from]))),
        earlier=", ".join(f"**{_plainly(word)}**" for word in shown.earlier),
    )


def _plainly(token: str) -> str:
    """Return a token for a sentence, without the dot that stands for its space."""
    return as_plain(token.removeprefix("·") or token)


def follow_word(p: Page, shown: LensViewModel) -> None:
    """Draw, if it is unfolded, the probabilities of the competing words at one position."""
    if shown.selected is None:
        return
    with choice.collapsible(p.text["course"], icon=":material/show_chart:", key="lens_course") as opened:
        if opened.open:
            caption = p.text["course_caption_class" if shown.lens.of_classes else "course_caption"]
            show_figure(
                word_probabilities(shown.course),
                name="word-course",
                caption=caption.format(stack=common(f"focus.{shown.lens.stack}")),
                alt=p.text["course_alt"],
            )


def explain(p: Page, shown: LensViewModel) -> None:
    """Draw the formula, its limits, and the code."""
    text, lens, config = p.text, shown.lens, p.checkpoint.config
    st.caption(text["caution"])
    with st.expander(text["how"], icon=":material/function:"):
        show_formula(
            _formula(p, lens),
            caption=text["formula_caption"].format(
                steps=len(lens.steps),
                tokens=len(p.trace.tokens(lens.stack)),
                width=config.d_model,
                out=whole(config.n_classes or config.vocabulary_size),
                what=text["what_classes" if lens.of_classes else "what_words"],
            ),
        )
        st.markdown(_notes(p, lens))
    show_snippet(
        "lens",
        f"{p.preamble}\nfrom transformer.predictions.lens import logit_lens\n"
        "from views.lens.lens_figures import lens_grid\n\n"
        f"lens = logit_lens(trace, sublayers={shown.choices.sublayers})\n"
        "for step, words, probabilities in zip(lens.steps, lens.words, lens.probability):\n"
        f"    print(step, words[{shown.position}], probabilities[{shown.position}])\n"
        "figure = lens_grid(lens)  # figure.show() draws it\n",
    )
    show_source(logit_lens, decided_step)


def _notes(p: Page, lens: Lens) -> str:
    """Return remarks about this kind of model."""
    model, stack = p.checkpoint.model, p.checkpoint.model.get_submodule(lens.stack)
    lines = [p.text["pre" if lens.final_norm else "post"].format(norm=type(stack.final_norm).__name__)]
    if not lens.final_norm:
        lines.append(p.text["post_normed" if f"{lens.stack}.embedding.norm.output" in p.trace else "post_bare"])
    if lens.of_classes:
        first = isinstance(model.classifier, FirstTokenClassifier)
        lines.append(p.text["classes_first" if first else "classes"])
    projection = getattr(stack, "vocabulary_projection", None)
    if isinstance(projection, TokenHead):
        lines.append(p.text["token_head"])
    if (cap := getattr(projection, "cap", None)) is not None:
        lines.append(p.text["cap"].format(cap=three_digits(cap)))
    if lens.stack == "decoder" and (never := p.checkpoint.framing.never):
        names = ", ".join(f"`{in_code(p.checkpoint.tokenizer.display(id))}`" for id in never)
        lines.append(p.text["every_word"].format(names=names))
    if len(p.trace.stacks) > 1:
        lines.append(p.text["encoder"])
    return " ".join((*lines, p.text["source"]))


def _formula(p: Page, lens: Lens) -> str:
    """Return the formula by which a row is read out.

    It passes through the final norm, if there is one, and any further step before the words.
    """
    stack = p.checkpoint.model.get_submodule(lens.stack)
    norm = type(stack.final_norm).__name__
    head = getattr(p.checkpoint.model, "classifier", None) or getattr(stack, "vocabulary_projection", None)
    if isinstance(head, (TokenHead, FirstTokenClassifier)):
        stream = rf"\text{{{norm}}}_{{\text{{final}}}}(x_k)" if lens.final_norm else "x_k"
        return p.text["formula_head"].replace("%X%", stream)
    return p.text["formula_pre" if lens.final_norm else "formula_post"].replace("%NORM%", norm)
