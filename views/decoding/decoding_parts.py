"""Shared parts of several sections: controls, recorded texts, the score of a text, a row of attention."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from charts.toolkit.numbers import whole
from charts.toolkit.style import three_digits
from transformer import Decoding, decode
from transformer.predictions.answer_probabilities import prediction_rows
from transformer.predictions.comparison import word_diff
from transformer.predictions.decoding_steps import StepAttention, without_most_activations
from transformer.runs.decoding_strategies import Strategy
from ui.compute.loading import config_of, load_trace
from ui.compute.store import store
from ui.lab.effects import marked_text
from ui.page.page import PROMPT_ONLY, Page
from ui.shell import choice
from ui.shell import focus as shared_focus
from ui.shell.choice import chosen_option, one_of
from ui.shell.presentation.presenter import labels
from ui.show.figures import show_figure, show_formula
from ui.words.texts import as_plain, page_texts, slider_format
from views.decoding import decoding_figures
from views.decoding.decoding_view_model import (
    DecodingViewModel,
    Location,
    TextNumbers,
    WrittenStep,
    best_alignment,
    given_of,
    kinds_of,
)

SECTIONS = ("step", "strategies", "tree", "alignment")

_CHANGES_SIDEBAR = ("attention_heads", "alignment_layer")  # see ``needed``


def kind_of_answer() -> str:
    """Return "text", "blanks" or "class", on which the layout of the page depends."""
    try:
        config = config_of(shared_focus.current().checkpoint)
    except (OSError, ValueError):  # the page frame reports the problem with the checkpoint
        return "text"
    return "text" if config.has_decoder else "class" if config.n_classes else "blanks"


def location_of(p: Page) -> Location:
    """Return the shared focus in the form that the view models require."""
    return Location(p.focus.layer, p.focus.head, p.focus.token)


def written(p: Page, strategy: Strategy, *, forced: tuple[int, ...] = ()) -> Decoding:
    """Return what the strategy writes for the focused sentence.

    Args:
        p: The page.
        strategy: How each token is chosen.
        forced: Ids with which the text begins; without any, the target of the sidebar.
    """
    begins = forced or given_of(p.run)
    run = replace(p.run, target=None, strategy=strategy)

    def write() -> Decoding:
        arguments = {"forced": begins, "source_pads": run.source_pads, "record_steps": True}
        return without_most_activations(decode(run.checkpoint, run.sentence, strategy, **arguments))

    return store.get(run, ("decoding", begins), write, wait="wait.write")


def follow_typed_text(p: Page) -> None:
    """Show a text that the model ends at once as if all but its first word were given."""
    focus, config = p.focus, p.checkpoint.config
    first, _, rest = focus.sentence.strip().partition(" ")
    is_typed = config.kind == "decoder-only" and p.checkpoint.prompt is None and not (focus.target or focus.lesson)
    # The first token tells, which all pages need; generating the whole text would take as long as the page itself.
    if is_typed and rest.strip() and prediction_rows(load_trace(replace(p.run, strategy=PROMPT_ONLY))).everywhere:
        st.caption(p.text["typed_text"])
        p.focus = replace(focus, sentence=first, target=rest)


def best_layer(p: Page) -> int | None:
    """Return the layer that aligns best over many sentences, if that is known."""
    return store.get(p.checkpoint, "best alignment", lambda: (best_alignment(p.checkpoint),))[0]


# ---- controls: each returns values of DecodingChoices ---------------------------------------------------------------


def sections_of(p: Page) -> list[str]:
    """Return the sections that the model has: without cross-attention, no words are aligned."""
    return [name for name in SECTIONS if name != "alignment" or p.checkpoint.config.has_encoder]


def needed(p: Page) -> tuple[str, ...]:
    """Return the selectors for ``page(needs=…)``: only those that change the page."""
    config = p.checkpoint.config
    if config.n_classes:
        return ()
    layer = True
    if config.has_decoder:
        offered = sections_of(p)
        section = choice.read_option("decoding_section", choice.names_of(p.text, "section", offered), offered[0])
        if section in ("strategies", "tree"):  # these sections draw no attention
            return ()
        if section == "alignment" and best_layer(p) is not None:
            options = _names(p, "alignment_layer", ("best", "chosen"), "layer")
            layer = choice.read_option("alignment_layer", options, "best") == "chosen"
    head = choice.read_option("attention_heads", _names(p, "attention_heads", ("mean", "one"), "attention"), "mean")
    names = [*(["layer"] if layer else []), *(["head"] if head == "one" else [])]
    return tuple(names if config.has_decoder else [*names, "token"])


def choose(p: Page, key: str, options: Sequence[str], name: str) -> str:
    """Draw a few options as buttons in a row, called ``<name>_<option>`` in the page's text."""
    return one_of(p.text[key], _names(p, key, options, name), key=key, whole_page=key in _CHANGES_SIDEBAR)


def _names(p: Page, key: str, options: Sequence[str], name: str) -> dict[str, list[str]]:
    """Return other values that an address may hold, e.g. one made while another head was selected."""
    heads, texts = [p.focus.head], [p.text]
    if choice.value(key, options[0]) not in options:
        heads, texts = [*heads, *range(p.checkpoint.config.heads_in(p.focus.stack))], page_texts(p.text.name)
    return {
        option: [text[f"{name}_{option}"].format(head=head) for head in heads for text in texts] for option in options
    }


def choose_heads(p: Page) -> bool:
    """Draw the choice between the mean of all heads and one, which needs a row of heads in the sidebar."""
    return choose(p, "attention_heads", ("mean", "one"), "attention") == "one"


def choose_attention(p: Page) -> dict[str, object]:
    """Draw the choice of kind and heads of the attention of a step."""
    kinds = kinds_of(p.checkpoint)
    with st.container(horizontal=True):
        kind = choose(p, "attention_kind", kinds, "attention") if len(kinds) > 1 else kinds[0]
        return {"attention_kind": kind, "one_head": choose_heads(p)}


def choose_strategy(p: Page) -> dict[str, object]:
    """Draw the choice between greedy and sampling, with its seed."""
    with st.container(horizontal=True, vertical_alignment="bottom", width="content"):
        strategy = chosen_option(
            p.text,
            "strategy",
            ["greedy", "sampling"],
            words=lambda text, option: text[f"strategy_{option}"].lower(),
            key="strategy",
            help=p.text["strategy_help"],
            wrap=True,
            label_visibility=labels(),
        )
        return {"strategy": strategy, "seed": choose_seed(p, width=150) if strategy == "sampling" else 0}


def choose_seed(p: Page, *, width: int) -> int:
    """Draw the box for the seed of sampling."""
    return int(choice.number(p.text["seed"], 0, 999_999, 0, key="seed", width=width))


def choose_reshaping(p: Page) -> dict[str, float]:
    """Draw temperature, top-k and top-p, one below the other."""
    temperature = choice.slider(
        p.text["temperature"], 0.1, 3.0, 1.0, 0.1, slider_format(), key="temperature", help=p.text["temperature_help"]
    )
    top_k = choice.slider(p.text["top_k"], 0, 50, 0, 1, key="top_k", help=p.text["top_k_help"])
    top_p = choice.slider(
        p.text["top_p"], 0.05, 1.0, 1.0, 0.05, slider_format(), key="top_p", help=p.text["top_p_help"]
    )
    return {"temperature": float(temperature), "top_k": int(top_k), "top_p": float(top_p)}


def choose_beam(p: Page) -> dict[str, float]:
    """Draw width and length penalty, the same for the comparison and the tree."""
    with st.container(horizontal=True):
        width = choice.slider(p.text["width"], 1, 5, 4, 1, key="beam_width", help=p.text["width_help"])
        exponent = choice.slider(
            p.text["penalty"], 0.0, 2.0, 0.6, 0.1, slider_format(), key="length_penalty", help=p.text["penalty_help"]
        )
    return {"beam_width": int(width), "length_penalty": float(exponent)}


# ---- what is shown --------------------------------------------------------------------------------------------------


def of_heads(p: Page, shown: DecodingViewModel) -> str:
    """Return a phrase for the attention that is shown: that of one head, or the mean of a layer."""
    count = shown.checkpoint.config.heads_in(shown.stack)
    key = "attention_of_mean" if shown.head is None else "attention_of_one"
    return p.text[key].format(layer=shown.layer, count=count, head=shown.head)


def show_attention(p: Page, shown: DecodingViewModel, found: StepAttention, *, name: str, caption: str) -> None:
    """Show one row of attention as bars."""
    show_figure(
        decoding_figures.step_attention(
            found.of(shown.head), tokens=found.key, allowed=found.allowed, of=of_heads(p, shown)
        ),
        name=name,
        caption=caption,
        alt=p.text["attention_alt"],
    )


def show_score(p: Page, shown: DecodingViewModel, numbers: TextNumbers) -> None:
    """Show the formula by which beam search ranks a text, with the numbers of one text."""
    show_formula(
        p.text["score_formula"],
        caption=p.text["score_caption"].format(
            sum=three_digits(numbers.total),
            count=numbers.count,
            end=as_plain(shown.end),
            exponent=three_digits(numbers.exponent),
            penalty=three_digits(numbers.penalty),
            score=three_digits(numbers.score),
        ),
    )


def what_fills(p: Page, step: WrittenStep) -> dict[str, str]:
    """Return the values of the sentence about a step (``comes_…``), as plain text."""
    chosen, best = step.chosen, step.candidates[0]
    return {
        "place": p.text["after"].format(text=step.before) if step.before else p.text["at_beginning"],
        "token": chosen.display,
        "best": best.display,
        "best_probability": three_digits(best.probability),
        "probability": three_digits(chosen.probability),
        "chance": three_digits(chosen.chance),
        "rank": whole(step.rank),
    }


def marked(before: str, after: str) -> str:
    """Return ``after`` as Markdown: new words in blue, words only in ``before`` struck out in orange."""
    if " ".join(before.split()) == " ".join(after.split()):
        return as_plain(after)
    # Two texts without any letters may differ in something else, e.g. control characters.
    return marked_text(word_diff(before, after)) or as_plain(after)
