"""Two sentences on one checkpoint: sentence A, and a sentence B that is typed or chosen."""

from functools import partial

import streamlit as st

import transformer
from charts.canvas.value_map import value_map
from charts.toolkit.style import three_digits
from charts.toolkit.words import localize, say
from transformer.layers.embedding_space import parts_of_cosine
from transformer.predictions.comparison import (
    align,
    compared_attention,
    difference_map,
    head_divergence,
    stream_similarity,
)
from ui.lab.experiments import experiment_with
from ui.lab.second_sentence import suggested_sentence
from ui.lab.shown_head import location
from ui.page.page import Page
from ui.shell import choice
from ui.shell import focus as shared_focus
from ui.shell.choice import chosen_option
from ui.shell.focus import start_of
from ui.shell.offers import offer
from ui.shell.openings import examples_of
from ui.shell.presentation.presenter import is_presenting, labels
from ui.show.drawings import show_map
from ui.show.figures import show_figure, show_formula, show_snippet, show_source
from ui.words.figure_texts import problem_text
from ui.words.language_guess import guess_language
from ui.words.texts import PageText, as_plain, common, model_sentences
from views.compare.compare_view_model import CompareViewModel, compare_view_model
from views.compare.run_comparison import (
    map_height,
    say_what_changes,
    show_answers,
    show_changed_row,
    show_maps,
    which_heads,
)
from views.compare.stream_distance_figure import stream_distance
from views.compare.which_vector import which_vector

_SECOND = "second"


def sentences(p: Page) -> None:
    """Draw the choice of sentence B and its comparison with sentence A."""
    sentence, pair = second_sentence(p)
    if not sentence.strip():
        st.info(p.text["second_empty"], icon=":material/info:")
        return
    try:
        found = experiment_with(p.run, sentence=sentence)
    except (transformer.InputError, transformer.NotFiniteError) as error:
        st.warning(p.text["second_wrong"].format(message=as_plain(problem_text(error))), icon=":material/edit:")
        return
    shown = compare_view_model([found], location(p))
    if p.encodes_sentences:
        _cosine(p, shown)
        say_what_changes(p, shown)
    else:
        say_what_changes(p, shown)
        show_answers(p, shown)
    if pair and pair["shows"] and not is_presenting():
        french = guess_language(" ".join(side.trace.text for side in shown.sides)) == "fr"
        st.caption(" ".join(pair[key] for key in ("shows", "in_french") if key in pair and (french or key == "shows")))
    parts = ["maps", "heads", "stream", *([] if p.encodes_sentences else ["vectors"])]
    match chosen_option(p.text, "more", parts, key="compare_more", label_visibility="collapsed", wrap=True):
        case "maps":
            show_changed_row(p, shown)
            show_maps(p, shown)
        case "heads":
            which_heads(p, shown)
        case "stream":
            _in_which_layer(p, shown)
        case "vectors":
            which_vector(p, sentence)
            return
    _code(p, shown)


def second_sentence(p: Page) -> tuple[str, dict[str, str] | None]:
    """Draw the box for sentence B; return it and the predefined pair that both sentences form, if any.

    By default, it is the partner of sentence A, there or in ``opening.toml``, or sentence A with one word changed.
    """
    focus = p.focus
    task = start_of(p.sentence, p.checkpoint.framing.starts)  # the task prefix, which predefined pairs get, too
    found = pairs_to_compare(p.text, task)
    partners = {one: two for pair in found for one, two in _both_ways(pair["first"], pair["second"])}
    partners |= {each.sentence: each.second for each in examples_of(focus.checkpoint) if each.second}
    by_itself = partners.get(p.sentence) or suggested_sentence(p) or p.sentence
    pairs = {pair["label"]: pair for pair in found}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        second = choice.text(
            p.text["second"],
            by_itself,  # unless edited, it follows sentence A
            key=_SECOND,
            help=p.text["second_help"],
            width=400,
            label_visibility=labels(),
        )
        here = {p.sentence, second}
        shown = next((label for label, pair in pairs.items() if {pair["first"], pair["second"]} == here), None)
        take = partial(_take, pairs)
        with st.popover(p.text["pairs"], icon=":material/format_list_bulleted:", key="compare pairs"):
            offer(p.text["pairs"], list(pairs), key="compare pair", chosen=shown, take=take, show_label=False)
    return second, pairs[shown] if shown else None


def pairs_to_compare(text: PageText, task: str = "") -> tuple[dict[str, str], ...]:
    """Return the predefined pairs.

    They have ``label``, ``shows``, the sentences ``first`` and ``second`` after the ``task``, and ``in_french``, an
    addition for translations into French.
    """
    pairs = model_sentences()["pair"].items()
    return tuple({**text["pair"][name], **{place: task + one for place, one in pair.items()}} for name, pair in pairs)


def _both_ways(one: str, two: str) -> tuple[tuple[str, str], ...]:
    return (one, two), (two, one)


def _take(pairs: dict[str, dict[str, str]], label: str) -> None:
    pair = pairs[label]
    choice.put(_SECOND, pair["second"])
    shared_focus.change(sentence=pair["first"], target="")


def _cosine(p: Page, shown: CompareViewModel) -> None:
    """Show the cosine of two sentence vectors, and the map of its parts: tokens of A × tokens of B."""
    text, parts = p.text, shown.cosine_parts
    tokens = [side.trace.tokens("encoder") for side in shown.sides]
    row, column = divmod(int(parts.argmax()), parts.shape[1])
    st.markdown(
        text["cosine"].format(
            cosine=three_digits(float(parts.sum())),
            share=three_digits(float(parts[row, column])),
            one=as_plain(tokens[0].displays[row]),
            other=as_plain(tokens[1].displays[column]),
        )
    )
    show_map(
        value_map(
            parts,
            row_labels=list(tokens[0].labels),
            column_labels=list(tokens[1].labels),
            row_title="A",
            column_title="B",
            title=text["cosine_map"],
            value_name=text["cosine_value"],
            height=map_height(),
        ),
        key="compare cosine",
    )
    show_formula(text["cosine_formula"], caption=text[f"cosine_{p.checkpoint.config.pooling}"])
    show_source(parts_of_cosine)


def _in_which_layer(p: Page, shown: CompareViewModel) -> None:
    """Show how far the residual streams of corresponding tokens are from each other, layer by layer."""
    found = shown.stream
    st.markdown(p.text["stream_intro"].format(stack=common(f"focus.{shown.location.stack}")))
    if not found.alignment.pairs:
        st.markdown(p.text["stream_none"])
        return
    show_figure(
        stream_distance(found.cosine, steps=found.steps, labels=found.labels, equal=found.alignment.equal),
        name="stream-distance",
        caption=_furthest(p, shown),
        alt=p.text["stream_alt"],
    )
    caption = p.text["stream_caption"].format(
        steps=len(found.steps), tokens=len(found.labels), width=p.checkpoint.config.d_model
    )
    show_formula(p.text["stream_formula"], caption=caption)


def _furthest(p: Page, shown: CompareViewModel) -> str:
    """Name the equal word whose two vectors differ most, and where."""
    if shown.furthest is None:
        return ""
    (step, pair), found = shown.furthest, shown.stream
    return p.text["stream_furthest"].format(
        token=as_plain(found.labels[pair]),
        cosine=three_digits(float(found.cosine[step, pair])),
        step=localize(found.steps[step]) if step else say("compare.embedding"),
        start=three_digits(float(found.cosine[0, pair])),
    )


def _code(p: Page, shown: CompareViewModel) -> None:
    """Show the code for two sentences on one checkpoint."""
    (stack, kind, layer, head), second = shown.location, shown.sides[1].trace.sentence
    show_snippet(
        "compare",
        f"{p.preamble}\nfrom transformer.predictions.comparison import (\n"
        "    compared_attention, difference_map, head_differences\n)\n\n"
        f"other = transformer.trace(checkpoint, {second!r})\n"
        f'place = ("{stack}", {layer}, "{kind}")\n'
        f"first, second = (compared_attention(run, *place) for run in (trace, other))\n"
        f"difference = difference_map(first, second, head={head})\n"
        "print(difference.mean_change, difference.query.labels)\n"
        f'print(head_differences(trace, other, "{stack}", "{kind}"))\n',
    )
    show_source(align, compared_attention, difference_map, head_divergence, stream_similarity)
