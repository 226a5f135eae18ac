"""The sections of Decoding: strategies side by side, the beam tree, aligned words, blanks, classes.

``step_by_step.py`` has the steps of one text. The attention shown is that of the stack that generates
the text: the layer in focus, one of its heads or their mean.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from charts.figures.bars import Bars, bars, columns
from charts.figures.beam_tree import COLUMN, search_tree
from charts.figures.curves import Curve, curves
from charts.figures.heat_maps import heat_map
from charts.figures.patch_contributions import patch_contributions
from charts.toolkit import style
from charts.toolkit.axes import Axis
from charts.toolkit.numbers import number
from charts.toolkit.style import escape, lines, three_digits
from charts.toolkit.words import say
from transformer import Beam, Decoding, Greedy, Sample, decode
from transformer.attribution.leave_one_out import LeaveOneOut, leave_one_out
from transformer.config import NEXT_SENTENCE
from transformer.guests.read_out import read_out_of
from transformer.heads.role_files import best_alignment
from transformer.models import Classifier
from transformer.predictions.answer_probabilities import (
    Fillings,
    answered_position,
    blanks,
    fill_blanks,
    fillings,
    first_blank,
    prediction_rows,
)
from transformer.predictions.comparison import word_diff
from transformer.predictions.decoding_steps import decode_with_attention, token_log_probabilities
from transformer.predictions.hypothesis_tree import FINISHED, PRUNED, BeamTree, beam_tree
from transformer.predictions.word_alignment import WordAlignment, align
from transformer.predictions.written_text import TextScore, likelier
from transformer.runs.beam_search import beam_search
from transformer.runs.decoding_strategies import Strategy
from transformer.runs.masked_word import hidden_id
from transformer.runs.next_sentence import NextSentenceAnswer, next_sentence
from transformer.text.tokens import TokenSequence
from ui.compute.loading import load_trace, readable_config
from ui.page.page import PROMPT_ONLY, Page, guard
from ui.sections.uncertain_output import uncertainty_note
from ui.shell import choice
from ui.shell import focus as shared_focus
from ui.shell.fragments import fragment
from ui.shell.openings import trained_on
from ui.show.figures import show_figure
from ui.words.model_terms import logits_formula, next_sentence_line
from ui.words.texts import Marked, as_plain, code, filled, listed, page_texts, slider_format
from ui.words.word_diff import marked_text

OFFERED = ("step", "strategies", "tree", "alignment")
STRATEGIES = ("greedy", "sampling", "beam")
STEPS_OF_TREE = 12  # that fit on one screen
MOST_BESIDE = 16  # words whose contributions have room beside the classes
_NEXT_SENTENCE = r"p = \text{softmax}\big(\tanh(h_0\, W_1 + b_1)\, W + b\big)"
_HEADS, _LAYERS = ("mean", "one"), ("best", "chosen")
_NUMBERED = 14  # columns of the alignment up to which every cell shows its number


# ---- what several sections share ------------------------------------------------------------------------------------


def kind_of_answer() -> str:
    """Return "text", "blanks" or "class", on which the layout of the page depends."""
    config = readable_config(shared_focus.current().checkpoint)
    if config is None or config.has_decoder:
        return "text"
    return "class" if config.n_classes else "blanks"


def offered(p: Page) -> list[str]:
    """Return the sections that the model has: without cross-attention, no words are aligned."""
    return [name for name in OFFERED if name != "alignment" or p.checkpoint.config.has_encoder]


def needed(p: Page) -> tuple[str, ...]:
    """Return what can be chosen beside the sentence: only what changes the page."""
    config = p.checkpoint.config
    if config.n_classes:
        return ()
    layer = True
    if config.has_decoder:
        section = p.asked("section", offered(p), key="decoding_section")
        if section in ("strategies", "tree"):  # these sections draw no attention
            return ()
        if section == "alignment" and best_layer(p) is not None:
            layer = p.asked("alignment_layer", _LAYERS, key="alignment_layer") == "chosen"
    one_head = p.asked("attention_heads", _HEADS, key="attention_heads") == "one"
    names = ["layer"] * layer + ["head"] * one_head
    return tuple(names if config.has_decoder else [*names, "token"])


def follow_typed_text(p: Page) -> None:
    """Show a text that the model ends at once as if all but its first word were given."""
    focus, config = p.focus, p.checkpoint.config
    first, _, rest = focus.sentence.strip().partition(" ")
    is_typed = config.kind == "decoder-only" and p.checkpoint.prompt is None and not (focus.target or focus.lesson)
    # The first token tells, which all pages need; generating the whole text would take as long as the page itself.
    if is_typed and rest.strip() and prediction_rows(load_trace(replace(p.run, strategy=PROMPT_ONLY))).everywhere:
        p.say("typed_text", small=True)
        p.focus = replace(focus, sentence=first, target=rest)


def best_layer(p: Page) -> int | None:
    """Return the layer that aligns best over many sentences, if that is known."""
    return p.calc(best_alignment, p.checkpoint, name="best_layer")


def given(p: Page) -> str:
    """Return the target text that every output must begin with; often empty."""
    return p.run.target if p.run.target and p.run.target.strip() else ""


def written(p: Page, strategy: Strategy, *, name: str, forced: tuple[int, ...] = ()) -> Decoding:
    """Return what a strategy generates for the sentence, after the ``forced`` ids or the given target."""
    return p.calc(
        decode_with_attention, p.checkpoint, p.run.sentence, strategy, name=name, wait="wait.write",
        shows=(".text", ".log_probability"), **_inputs(p, forced),
    )  # fmt: skip


def _inputs(p: Page, forced: tuple[int, ...] = ()) -> dict[str, Any]:
    """Return what a search gets besides the sentence: the beginning of the output, and padding, if any."""
    found = {"forced": forced or given(p), "source_pads": p.run.source_pads}
    return {name: value for name, value in found.items() if value}


def stack_of(p: Page) -> str:
    """Return the stack whose attention is shown."""
    return "decoder" if p.checkpoint.config.has_decoder else "encoder"


def layer_of(p: Page) -> int:
    """Return the layer whose attention is shown; the focus may be in a stack with more layers."""
    config = p.checkpoint.config
    return min(p.focus.layer, (config.n_decoder_layers if config.has_decoder else config.n_encoder_layers) - 1)


def output_matrix(p: Page) -> tuple[str, str]:
    """Return the name of the matrix of the logits in LaTeX and in text: Eᵀ for the embedding's."""
    return ("E^\\top", "Eᵀ") if p.checkpoint.config.tie_embeddings else ("W", "W")


def choose_head(p: Page) -> int | None:
    """Draw the choice between the mean of all heads, ``None``, and the one in focus."""
    key = "attention_heads"
    return p.focus.head if p.option(key, _HEADS, key=key, whole_page=True) == "one" else None


def of_heads(p: Page, layer: int, head: int | None) -> str:
    """Return a phrase for the attention that is shown: that of one head, or the mean of a layer."""
    key = "attention_of.mean" if head is None else "attention_of.one"
    return p.words(key, layer=layer, count=p.checkpoint.config.heads_in(stack_of(p)), head=str(head))


def choose_seed(p: Page, *, width: int) -> int:
    """Draw the box for the seed of sampling."""
    return int(choice.number(p.text["seed"], 0, 999_999, 0, key="seed", width=width))


def choose_sampling(p: Page, seed: int = 0) -> Sample:
    """Draw temperature, top-k and top-p, one below the other."""

    def slider(key: str, low: float, high: float, default: float, step: float, format: str | None = None) -> float:
        return choice.slider(p.text[key], low, high, default, step, format, key=key, help=p.text[f"{key}_help"])

    temperature = slider("temperature", 0.1, 3.0, 1.0, 0.1, slider_format())
    top_k = slider("top_k", 0, 50, 0, 1)
    top_p = slider("top_p", 0.05, 1.0, 1.0, 0.05, slider_format())
    return Sample(float(temperature), int(top_k), float(top_p), seed=seed)


def choose_beam(p: Page) -> Beam:
    """Draw width and length penalty, the same for the comparison and the tree."""
    with st.container(horizontal=True):
        width = choice.slider(p.text["width"], 1, 5, 4, 1, key="beam_width", help=p.text["width_help"])
        exponent = choice.slider(
            p.text["penalty"], 0.0, 2.0, 0.6, 0.1, slider_format(), key="length_penalty", help=p.text["penalty_help"]
        )
    return Beam(int(width), length_penalty=float(exponent))


def marked(before: str, after: str) -> str:
    """Return ``after`` as Markdown: new words in blue, words only in ``before`` struck out in orange."""
    if " ".join(before.split()) == " ".join(after.split()):
        return as_plain(after)
    # Two texts without any letters may differ in something else, e.g. control characters.
    return marked_text(word_diff(before, after)) or as_plain(after)


def _show_score(p: Page, score: TextScore) -> None:
    """Show the formula by which beam search ranks a text, with the numbers of one text."""
    numbers = {"sum": score.total, "exponent": score.exponent, "penalty": score.penalty, "score": score.score}
    p.formula(p.text["score_formula"], "score_caption", count=score.count, end=_end(p), **numbers)


def _end(p: Page) -> str:
    """Return the token that ends a text."""
    return "".join([p.checkpoint.tokenizer.display(id) for id in p.checkpoint.framing.end]) or "–"


# ---- strategies side by side ----------------------------------------------------------------------------------------


@fragment
def strategies(p: Page) -> None:
    """Draw three texts with their log-probabilities; words that the greedy text lacks are marked."""
    with guard():
        sample, beam = _choose_strategies(p, _side_by_side())
        compared = dict(zip(STRATEGIES, (Greedy(), sample, beam), strict=True))
        texts = {name: written(p, strategy, name=name) for name, strategy in compared.items()}
        scores = {name: TextScore.of(text, beam.length_penalty) for name, text in texts.items()}
        # A separate row, so that the texts are aligned whatever controls are above them.
        for column, name in zip(_side_by_side(), STRATEGIES, strict=True):
            with column, st.container(border=True, key=f"text {name}"):
                p.say(f"strategy_name.{name}", small=True)  # repeated for readers who have scrolled past the headings
                _show_strategy(p, texts, name, scores[name])
        st.caption(p.md("strategies_marks") + (f" {p.md('begins_forced')}" if given(p) else ""))
        found, factor = likelier(texts["beam"], texts["greedy"])
        p.say(f"verdict.{found}", factor=factor)
        if ignored := p.checkpoint.framing.ignored:
            p.say("ignored", small=True, settings=listed(code(setting) for setting in ignored))
        names = {name: p.words(f"strategy_name.{name}") for name in STRATEGIES}
        show_figure(
            running_log_probability(
                {names[name]: token_log_probabilities(text) for name, text in texts.items()},
                {names[name]: text.tokens.displays for name, text in texts.items()},
            ),
            name="running-log-probability",
            caption=p.md("running_caption"),
            alt=p.text["running_alt"],
        )
        rows = [
            {
                "strategy": names[name],
                "text": text.text,
                "tokens": scores[name].count,
                "Σ log p": scores[name].total,
                "log p per token": scores[name].each,
                "length penalty": scores[name].penalty,
                "score": scores[name].score,
                "finished": text.finished,
            }
            for name, text in texts.items()
        ]
        p.table(rows, name="strategies", caption=p.md("strategies_table"))
        _show_score(p, scores["beam"])
        p.code(decode, beam_search)


def _side_by_side() -> list[DeltaGenerator]:
    """Return one container per strategy; narrow windows stack them, so that the button labels still fit."""
    grid = st.grid(len(STRATEGIES), min_column_width=180, gap="medium")
    return [grid.container() for _ in STRATEGIES]


def _choose_strategies(p: Page, columns: list[DeltaGenerator]) -> tuple[Sample, Beam]:
    for column, name in zip(columns, STRATEGIES, strict=True):
        column.markdown(f"**{p.md(f'strategy_name.{name}')}**")
    with columns[0]:
        p.say("greedy_is", small=True)
    with columns[1]:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            seed = choose_seed(p, width=130)
            st.button(p.text["draw_again"], icon=":material/casino:", key="draw again", on_click=_draw_again)
            settings = st.popover(p.text["sampling_settings"], icon=":material/tune:")
        with settings:
            sample = choose_sampling(p, seed)
    with columns[2]:
        return sample, choose_beam(p)


def _draw_again() -> None:
    choice.put("seed", (int(choice.value("seed", "0")) + 1) % 1_000_000)


def _show_strategy(p: Page, texts: Mapping[str, Decoding], name: str, score: TextScore) -> None:
    """Draw one text with its numbers."""
    text, greedy = texts[name], texts["greedy"]
    words = as_plain(text.text) if name == "greedy" else marked(greedy.text, text.text)
    st.markdown(f"##### {words or '–'}")
    if name != "greedy" and text.tokens.ids == greedy.tokens.ids:
        p.say("same_as_greedy", small=True)
    p.say("numbers", sum=score.total, each=score.each, count=score.count, score=score.score)
    if not text.finished:
        p.say("unfinished", small=True, count=score.count)


# ---- the tree of a beam search --------------------------------------------------------------------------------------


@fragment
def tree(p: Page) -> None:
    """Draw the tree, how to read it, and the texts that the search returned."""
    with guard():
        columns = st.container(key="beam controls").columns([2, 1, 1])
        with columns[0]:
            beam = choose_beam(p)
        with columns[1]:
            pruned = choice.slider(p.text["pruned"], 0, 5, 2, 1, key="pruned", help=p.text["pruned_help"])
        found = p.calc(
            beam_tree, p.checkpoint, p.run.sentence, beam, name="tree", slow=True, wait="wait.search",
            shows=(".winner[-1].score", ".hypotheses"), **_inputs(p),
        )  # fmt: skip
        if found is None:  # stopped
            return
        first, last_first = 1, found.n_steps - STEPS_OF_TREE + 1
        if last_first > 1:
            with columns[2]:
                owner = {"key": "first step", "owner": found.n_steps}
                first = int(choice.slider(p.text["window"], 1, last_first, 1, 1, **owner))
        n_drawn = min(STEPS_OF_TREE, found.n_steps)
        steps = {"first": first, "last": first + n_drawn - 1, "count": found.n_steps}
        window = f"{p.md('window_caption', **steps)} " if last_first > 1 else ""
        show_figure(
            search_tree(found, first=first, n_steps=STEPS_OF_TREE, pruned=pruned),
            name="beam-tree",
            caption=window + p.md("tree_caption", beam=beam.width),
            alt=p.text["tree_alt"],
            room=COLUMN * n_drawn + 40,
        )
        st.markdown(_story(p, found))
        scores = [TextScore(text.log_probability, len(text.ids), beam.length_penalty) for text in found.hypotheses]
        rows = [
            {
                "place": place,
                "text": text.text,
                "tokens": score.count,
                "Σ log p": score.total,
                "length penalty": score.penalty,
                "score": text.score,
                "finished": text.finished,
            }
            for place, (text, score) in enumerate(zip(found.hypotheses, scores, strict=True), start=1)
        ]
        p.table(rows, name="beam-texts", caption=p.md("tree_table"))
        _show_score(p, scores[0])
        p.code(decode, beam_search)


def _story(p: Page, found: BeamTree) -> str:
    """State how many branches the search expanded, and how close the output came to being pruned."""
    counts = {"count": len(found.nodes), "pruned": found.count(PRUNED), "finished": found.count(FINISHED)}
    story = p.md("tree_counts", steps=found.n_steps, end=_end(p), **counts)
    if (lowest := found.lowest) is None:
        return story
    if lowest.rank == 1:
        return f"{story} {p.md('tree_always_first')}"
    return f"{story} {p.md('tree_behind', rank=lowest.rank, step=lowest.step, word=lowest.display)}"


# ---- aligned words --------------------------------------------------------------------------------------------------


def alignment(p: Page) -> None:
    """Draw the words of the output against the words of the source, as a map and as a table."""
    layer, tokens = layer_of(p), _special_tokens(p.trace.source)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if (best := best_layer(p)) is not None:
            way = p.option("alignment_layer", _LAYERS, key="alignment_layer", whole_page=True)
            layer = best if way == "best" else layer
        head = choose_head(p)
        when = p.option("when", ("written", "read"), key="when")
        label = p.md("specials", tokens=tokens)
        specials = choice.toggle(label, key="align specials", help=p.text["specials_help"])
    found = p.calc(align, p.trace, layer=layer, head=head, when=when, name="aligned", shows=(".target", ".weights"))
    words = p.calc(found.best, specials=specials, name="best", shows=("",))
    among = Marked("") if specials else p.md("alignment_among", tokens=tokens)
    target, source = [word.text for word in found.target], [word.text for word in found.source]
    row = p.words(f"when_row.{when}")
    counts = {"pieces": len(p.trace.target), "words": len(target)}
    written = [[number(f"{weight:.3f}") for weight in weights] for weights in found.weights]
    figure = heat_map(
        found.weights, rows=Axis(row, target), columns=Axis(say("decoding.source_word"), source), signed=False,
        hover=lines("%{y}", say("decoding.looks_at", other="%{x}"), say("names.weight")), limit=1, gap=1,
        value=say("names.weight"), texts=written if len(source) <= _NUMBERED else (), frames=list(enumerate(words)),
    )  # fmt: skip
    show_figure(
        figure,
        name="word-alignment",
        caption=p.md("alignment_caption", of=of_heads(p, layer, head), among=among, **counts),
        alt=p.text["alignment_alt"],
    )
    p.table(_aligned(found, words), name="word-alignment-table", caption=p.md("alignment_table", among=among))
    p.say("alignment_caution", small=True)
    longest = found.target[found.longest]
    p.formula(
        p.text["alignment_formula"],
        "alignment_formula_caption",
        queries=len(p.trace.target),
        keys=len(p.trace.source),
        rows=len(target),
        columns=len(source),
        word=longest.text,
        pieces=longest.end - longest.start,
        sum=float(found.weights[0].sum()),
    )
    p.code()


def _special_tokens(source: TokenSequence) -> str:
    """Return the special tokens of a source without padding, each once."""
    return " ".join(dict.fromkeys([t.display for t in source if t.special and t.role != "pad"])) or "–"


def _aligned(found: WordAlignment, words: np.ndarray) -> list[dict[str, object]]:
    """List each word of the output with its first and second source word."""
    rows = zip(found.target, found.weights, words, found.second(words), found.entropy, strict=True)
    return [
        {
            "word of the output": word.text,
            "source word": found.source[best].text,
            "weight": float(weights[best]),
            "next": "" if second is None else found.source[second].text,
            "its weight": 0.0 if second is None else float(weights[second]),
            "entropy in bits": float(entropy),
            "pieces": word.end - word.start,
        }
        for word, weights, best, second, entropy in rows
    ]


# ---- models that fill in blanks -------------------------------------------------------------------------------------


def marked_position(p: Page) -> tuple[str, int]:
    """Return what the strip marks: the blank that is shown or, without a blank, the focused token."""
    found = blanks(p.trace)
    if not found:
        return "encoder", answered_position(p.trace, None, p.focus.token)
    options = {position: [] for position in found}
    first = first_blank(found, p.focus.token)
    return "encoder", choice.read_option("blank", options, first, owner=_owner_of_blank(p, found))


def _owner_of_blank(p: Page, positions: tuple[int, ...]) -> tuple:
    """Return the owner of the choice of a blank: focusing another blank resets the choice to that one."""
    return p.trace.source.ids, p.focus.token if p.focus.token in positions else None


def _choose_blank(p: Page) -> int | None:
    positions, tokens = blanks(p.trace), p.trace.source
    if len(positions) < 2:
        return None
    names = {}
    for place, position in enumerate(positions, start=1):
        before = tokens[position - 1]
        key = "blank_first" if before.special else "blank_name"
        values = {"number": place, "text": before.display}
        names[position] = [filled(text[key], values, markdown=True) for text in page_texts(p.name)]
    first = first_blank(positions, p.focus.token)
    return choice.one_of(p.text["blank"], names, first, key="blank", owner=_owner_of_blank(p, positions), wrap=True)


def fill_in(p: Page) -> None:
    """Show the class of two sentences, then candidates for the chosen blank or the focused token."""
    if next_sentence(p.trace) is not None:
        _show_next_sentence(p, p.calc(next_sentence, p.trace, name="follows", shows=("",)))
        st.subheader(p.text["blanks"], anchor=False)
    position = answered_position(p.trace, _choose_blank(p), p.focus.token)
    typed = {"typed": hidden_id(p.trace, p.focus.sentence)} if p.masked else {}
    found = p.calc(fillings, p.trace, position, name="found", shows=(".rows[0].probability",), **typed)
    best, has_blank, token = found.rows[0], bool(blanks(p.trace)), p.trace.source[position].display
    hidden = next((row for row in found.rows if row.stands_there), None) if has_blank else None  # the typed word
    if has_blank:
        said = [p.md("blank_line", token=best.piece, probability=best.probability, filled=fill_blanks(p.trace))]
        if hidden is best:
            said.append(p.md("blank_right"))
        elif hidden is not None:
            said.append(p.md("blank_other", token=hidden.piece, probability=hidden.probability))
        st.markdown(" ".join(said))
    else:
        p.say("no_blank", small=True, token=token)
    left, right = st.columns(2)
    with left:
        _show_candidates(p, found, position)
    with right:
        figure, layer = st.container(), layer_of(p)
        view, head = p.trace.attention("encoder", layer), choose_head(p)
        weights = view.weights[:, position].mean(axis=0) if head is None else view.weights[head, position]
        allowed = view.allowed[position]
        hover = say("token_position", token="%{x}", place="%{x:d}")
        drawn = columns(
            Bars(np.where(allowed, weights, np.nan), lines(hover, say("names.weight")), texts=()),
            along=Axis(say("names.key_axis"), view.key.displays),
            up=say("decoding.weight_of", of=escape(of_heads(p, layer, head))),
            limits=(0, 1),
            masked=~allowed,
        )
        with figure:
            caption = p.md("blank_attention_caption", token=token, layer=layer)
            show_figure(drawn, name="attention-of-the-position", caption=caption, alt=p.text["attention_alt"])
    _show_formula_of_blank(p, position)
    p.code()


def _show_next_sentence(p: Page, found: NextSentenceAnswer) -> None:
    """Draw the probabilities that sentence B follows A and that it does not, and the formula."""
    st.markdown(next_sentence_line(found))
    rows = pd.DataFrame({"piece": NEXT_SENTENCE, "probability": found.probabilities})
    rows["chosen"] = rows["piece"] == found.name
    names = {"across": p.words("class_axis"), "row": p.words("class_row"), "chosen_name": p.words("class_chosen")}
    bars, formula = st.columns(2)
    with bars:
        figure = candidate_bars(rows, **names)
        show_figure(figure, name="next-sentence", caption=p.md("next_sentence_caption"), alt=p.text["class_alt"])
    with formula:
        first = p.trace.source[0].display
        p.formula(_NEXT_SENTENCE, "next_sentence_formula_caption", d_model=p.checkpoint.config.d_model, token=first)


def running_log_probability(log_p: Mapping[str, np.ndarray], tokens: Mapping[str, Sequence[str]]) -> go.Figure:
    """Draw Σ log p after every token, one line per text: higher means more probable up to there."""
    looks = (  # equal texts lie on top of each other; all of them stay visible
        {"colour": style.BAR, "width": 7, "dash": "solid", "marker": 10},
        {"colour": style.CATEGORICAL[2], "width": 4, "dash": "solid", "marker": 8},
        {"colour": style.CATEGORICAL[1], "width": 3, "dash": "dot", "marker": 7},
    )
    total = say("decoding.total_log_p", value=style.exact("y"))
    drawn = [
        Curve(
            escape(name), np.concatenate(([0.0], np.cumsum(values, dtype=np.float64))),
            (say("decoding.strategy_token", name=escape(name), place="%{x}", token="%{text}"), total),
            texts=["", *tokens[name]], **looks[place % len(looks)],
        )
        for place, (name, values) in enumerate(log_p.items())
    ]  # fmt: skip
    return curves(
        drawn, x=range(1 + max(map(len, log_p.values()))), across=say("decoding.tokens_written"),
        up=say("decoding.log_p_so_far"), height=340, xaxis={"showgrid": False},
    )  # fmt: skip


def candidate_bars(
    rows: pd.DataFrame, *, across: str, chosen_name: str, row: str = "", other_name: str = "", rest: float | None = None
) -> go.Figure:
    """Draw the probability of each candidate, 0…1, the chosen one in its own colour, and ``rest`` in grey.

    ``rows`` has the columns ``piece``, ``probability``, ``chosen`` and optionally ``typed``, for the word of the
    reader's text.
    """
    row = row or say("names.candidate")
    values, colours = rows["probability"].tolist(), [style.CHOSEN if its else style.BAR for its in rows["chosen"]]
    labels = list(map(str, rows["piece"]))
    texts = list(map(three_digits, values))
    if "typed" in rows:
        own = f"  {say('decoding.your_text')}"
        texts = [text + own * bool(its) for text, its in zip(texts, rows["typed"], strict=True)]
    if rest is not None:
        values, colours, texts = [*values, rest], [*colours, style.MASKED], [*texts, three_digits(rest)]
        labels.append(say("decoding.all_others"))
    legend = {other_name or row: style.BAR, chosen_name: style.CHOSEN} if rows["chosen"].any() else {}
    drawn = Bars(values, lines("%{y}", say("names.probability")), colours=colours, texts=texts)
    return bars(drawn, rows=Axis(row, labels), across=across, limits=(0, 1), legend=legend)


def _show_candidates(p: Page, found: Fillings, position: int) -> None:
    """Draw the most likely tokens at the position; what is filled in, or the token there, is coloured."""
    best, has_blank = found.rows[0], bool(blanks(p.trace))
    rows = pd.DataFrame([asdict(row) for row in found.rows]).assign(
        chosen=[row is best if has_blank else row.stands_there for row in found.rows],
        typed=[has_blank and row.stands_there and row is not best for row in found.rows],
    )
    chosen = p.words("blank_chosen" if has_blank else "blank_stands")
    show_figure(
        candidate_bars(rows, rest=found.rest, across=p.words("blank_axis"), chosen_name=chosen),
        name="candidates",
        caption=p.md("blank_caption", vocabulary=p.checkpoint.config.vocabulary_size, position=str(position)),
        alt=p.text["candidates_alt"],
    )


def _show_formula_of_blank(p: Page, position: int) -> None:
    """Show the formula from the vector of the position to the probabilities, with this model's shapes."""
    config, found = p.checkpoint.config, read_out_of(p.checkpoint.model, "encoder")
    latex, matrix = output_matrix(p)
    key, head = "blank_formula_caption", {}
    if found.kind == "token head":
        head = {"inner": found.head.dense.out_features, "activation": config.head_activation}
        key = "blank_formula_head"
    p.formula(
        p.text["blank_formula"].replace("%LOGITS%", logits_formula(found, f"h_{{{position}}}", latex)),
        key,
        d_model=config.d_model,
        position=str(position),
        matrix=matrix,
        vocabulary=config.vocabulary_size,
        **head,
    )


# ---- models that choose a class -------------------------------------------------------------------------------------


def classify(p: Page) -> None:
    """Draw class probabilities, and what each word contributes to the class that is shown."""
    more = {"pads": p.run.source_pads} if p.run.source_pads else {}
    found = p.calc(
        leave_one_out,
        p.checkpoint,
        p.run.sentence,
        name="found",
        slow=True,
        wait="wait.leave_out",
        shows=(".probabilities", ".contributions"),
        **more,
    )
    if found is None:  # stopped
        return
    names, best = found.class_names, found.predicted
    line = p.md("class_line", count=len(names), name=names[best], probability=found.probabilities[best])
    st.markdown(line + uncertainty_note(p))
    if told := trained_on(p.focus.checkpoint):
        st.caption(as_plain(told))
    is_short = len(found.words) <= MOST_BESIDE
    classes, words = st.columns([2, 3], gap="medium") if is_short else (st.container(), st.container())
    with classes:
        _show_classes(p, found, names)
    with words:
        _show_contributions(p, found, names)
    _show_formula_of_classes(p, len(names))
    p.code(Classifier.forward)


def _show_classes(p: Page, found: LeaveOneOut, names: Sequence[str]) -> None:
    """Draw the probability of each class."""
    rows = pd.DataFrame({"piece": names, "probability": found.probabilities})
    rows["chosen"] = rows.index == found.predicted
    called = {"chosen_name": p.words("class_chosen"), "other_name": p.words("class_other")}
    show_figure(
        candidate_bars(rows, across=p.words("class_axis"), row=p.words("class_row"), **called),
        name="classes",
        caption=p.md("class_caption", count=len(names)),
        alt=p.text["class_alt"],
    )


def _show_contributions(p: Page, found: LeaveOneOut, names: Sequence[str]) -> None:
    """Draw what each word contributes to the chosen class, if there is a word that could be left out."""
    if not found.words:
        return
    st.subheader(p.text["contributions"], anchor=False)
    chosen = choice.buttons(
        p.text["contributions_of"],
        names,
        default=names[found.predicted],
        key="class_shown",  # "class" is the code of a class of students
        owner=(p.checkpoint.fingerprint, p.sentence),
        wrap=True,
    )
    words, tokens = [word.text for word in found.words], p.trace.source
    contributions = found.contributions[:, names.index(chosen)]
    if p.checkpoint.config.reads_images and not p.checkpoint.config.is_guest and len(tokens.patches) == len(words):
        ink = _ink_of(tokens)
        most = int(contributions.argmax())
        if ink[most].max() == 0 and contributions[most] > 0:
            p.say("empty_patch", patch=words[most], name=chosen, value=contributions[most])
        figure = patch_contributions(contributions, ink=ink, names=words, of=chosen)
    else:
        across, lost = "decoding.omitted_word", "decoding.lost_without_word"
        if p.reads_pictures:
            across, lost = "decoding.hidden_patch", "decoding.lost_without_patch"
        hover, up = say("decoding.numbered_word", token="%{x}", place="%{x:d}"), say(lost, name=escape(chosen))
        drawn = Bars(contributions, lines(hover, up), signed=True)
        figure = columns(drawn, along=Axis(say(across), words), up=up, height=230)
    show_figure(
        figure,
        name="word-contributions",
        caption=p.md("contributions_caption", count=len(words), name=chosen),
        alt=p.text["contributions_alt"],
    )


def _ink_of(tokens: TokenSequence) -> np.ndarray:
    """Return the ink of every patch of an image, 0 to 1: [patch, row, column]."""
    size = round(len(tokens[tokens.patches[0]].pixels) ** 0.5)
    return np.array([tokens[at].pixels for at in tokens.patches], dtype=float).reshape(-1, size, size)


def _show_formula_of_classes(p: Page, count: int) -> None:
    """Show the formula from the encoder's vectors to the class probabilities, with its shapes."""
    config, first = p.checkpoint.config, read_out_of(p.checkpoint.model, "encoder").kind == "first"
    p.formula(
        p.text["class_formula_first" if first else "class_formula"],
        "class_formula_first_caption" if first else "class_formula_caption",
        tokens=len(p.trace.source) - p.focus.pads,
        d_model=config.d_model,
        count=count,
        activation=config.head_activation if first else "",
    )
