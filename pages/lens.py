"""Lens: what would the model say after layer k? Every layer read out as if it were the last."""

import streamlit as st

from charts.toolkit.numbers import whole
from transformer.predictions.jacobian_lens import jacobian_lens
from transformer.predictions.lens import decided_step, logit_lens
from transformer.predictions.lens import word_course as course_of
from ui.shell.page import page
from ui.show.figures import show_figure, show_formula, show_snippet, show_source
from ui.words.texts import common
from views.lens.author import author, choose_words
from views.lens.jacobian import compared, fitted
from views.lens.lens_figures import ROOM, lens_grid, word_course
from views.lens.logit_lens import (
    GRID,
    choose,
    chosen_follow,
    chosen_lens,
    decided_text,
    formula_of,
    notes,
    place_of,
    place_text,
    position_of,
    window,
)

with page("lens", needs=("token",), marks=place_of) as p:
    text, config = p.text, p.checkpoint.config
    with st.container(horizontal=True, vertical_alignment="bottom"):
        fit, view = None, choose(p, "view", ["layers", "jacobian", "author"])
        if view == "author":
            lens = chosen_follow(p, sublayers=False)
            place = None if lens.of_classes else position_of(p, lens)
            words = choose_words(p, lens, place)
        else:
            words = None
            fit = fitted(p) if view == "jacobian" else None
            lens, colour = chosen_lens(p, fit)
    if words is not None:
        author(p, lens, place, words)
        p.finish()
    position = position_of(p, lens)
    shown, selected, piece = window(p, lens, position)
    show_figure(
        lens_grid(shown, colour=colour, selected=selected),
        name=GRID,
        caption=piece + text["grid_caption_scroll" if len(lens.read) > 12 else "grid_caption"],
        alt=text["grid_alt"],
        room=ROOM * len(shown.read) + 100,
    )
    course = course_of(p.trace, lens, position)
    st.markdown(decided_text(p, lens))
    st.markdown(place_text(p, lens, position, course.words[1] if len(course.words) > 1 else ""))
    if fit is not None:
        compared(p, fit, lens)
    show_figure(
        word_course(course),
        name="word-course",
        caption=text["course_caption_class"]
        if lens.of_classes
        else text["course_caption"].format(stack=common(f"focus.{lens.stack}")),
        alt=text["course_alt"],
    )
    show_formula(
        formula_of(p, lens),
        caption=text["formula_caption"].format(
            steps=len(lens.steps),
            tokens=len(p.trace.tokens(lens.stack)),
            width=config.d_model,
            out=whole(config.n_classes or config.vocabulary_size),
            what=text["what_classes" if lens.of_classes else "what_words"],
        )
        + ("" if fit is None else f" {text['jacobian_formula']}"),
    )
    st.markdown(notes(p, lens))
    if fit is None:
        code = f"lens = logit_lens(trace, sublayers={len(lens.steps) != p.trace.n_layers(lens.stack) + 1})\n"
    else:
        code = (
            "from transformer.predictions.jacobian_lens import jacobian_lens, load_jacobian_lens\n"
            "from transformer.text.sentence_files import read_sentences\n\n"
            "fit = load_jacobian_lens(checkpoint) or jacobian_lens(checkpoint, read_sentences())\n"
            "print(fit.agreement)\nlens = logit_lens(trace, transport=fit.transport)\n"
        )
    show_snippet(
        "lens",
        f"{p.preamble}\nfrom transformer.predictions.lens import logit_lens\n"
        f"from views.lens.lens_figures import lens_grid\n\n{code}"
        "for step, words, probabilities in zip(lens.steps, lens.words, lens.probability):\n"
        f"    print(step, words[{position}], probabilities[{position}])\n"
        "figure = lens_grid(lens)  # figure.show() draws it\n",
    )
    show_source(logit_lens, decided_step, *(() if fit is None else (jacobian_lens,)))
