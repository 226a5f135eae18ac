"""Outputs of models that do not generate: words for blanks, and classes with each word's part."""

from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import streamlit as st

from charts.toolkit.numbers import whole
from charts.toolkit.style import three_digits
from transformer.attribution.leave_one_out import leave_one_out
from transformer.config import NEXT_SENTENCE, PictureConfig
from transformer.guests.output_heads import TokenHead
from transformer.models import FirstTokenClassifier
from transformer.predictions.answer_probabilities import blanks
from transformer.runs.next_sentence import NextSentenceAnswer, next_sentence
from transformer.text.tokens import TokenSequence
from ui.compute.jobs import jobs
from ui.lab.next_sentence_class import next_sentence_line
from ui.lab.uncertain_output import uncertainty_note
from ui.page.page import Page
from ui.shell import choice
from ui.shell.choice import one_of
from ui.show.figures import show_figure, show_formula, show_snippet
from ui.words.model_terms import logits_formula
from ui.words.texts import PageText, as_plain, common, page_texts, without_pictures
from views.decoding import decoding_figures
from views.decoding.decoding_parts import choose_heads, location_of, show_attention
from views.decoding.decoding_view_model import DecodingChoices, FilledBlank, Verdict, answered_position, first_blank

_NEXT_SENTENCE = r"p = \text{softmax}\big(\tanh(h_0\, W_1 + b_1)\, W + b\big)"
MOST_BESIDE = 16  # words whose contributions have room beside the classes


def fill_blanks(p: Page) -> None:
    """Show the class of two sentences, then candidates for the chosen blank or the focused token."""
    if (found := next_sentence(p.trace)) is not None:
        _show_next_sentence(p, found)
        st.subheader(p.text["blanks"], anchor=False)
    shown = FilledBlank(
        p.run, location_of(p), DecodingChoices(blank=_choose_blank(p)), p.trace, p.focus.sentence if p.masked else ""
    )
    best, masked = shown.fillings.rows[0], shown.masked
    if shown.blanks:
        line = p.text["blank_line"].format(
            token=as_plain(best.piece), probability=three_digits(best.probability), filled=as_plain(shown.filled)
        )
        if masked is best:
            line += f" {p.text['blank_right']}"
        elif masked is not None:
            probability = three_digits(masked.probability)
            line += f" {p.text['blank_other'].format(token=as_plain(masked.piece), probability=probability)}"
        st.markdown(line)
    else:
        st.caption(p.text["no_blank"].format(token=as_plain(p.trace.source[shown.position].display)))
    left, right = st.columns(2)
    with left:
        _show_candidates(p, shown)
    with right:
        figure = st.container()
        shown = replace(shown, choices=replace(shown.choices, one_head=choose_heads(p)))
        with figure:
            caption = p.text["blank_attention_caption"].format(
                token=as_plain(p.trace.source[shown.position].display), layer=shown.layer
            )
            show_attention(p, shown, shown.attention, name="attention-of-the-position", caption=caption)
    _show_formula(p, shown)
    show_snippet(
        "encoder answers",
        f"import torch\n{p.preamble}\n"
        f'logits = torch.tensor(trace.values("encoder.logits")[{shown.position}])\n'
        f"probabilities = logits.softmax(-1)\n"
        f"print(probabilities[{best.id}].item())  # {best.piece} {best.probability:.7g}\n",
    )


def _show_next_sentence(p: Page, found: NextSentenceAnswer) -> None:
    """Draw the probabilities that sentence B follows A and that it does not, and the formula."""
    st.markdown(next_sentence_line(found))
    rows = pd.DataFrame({"piece": NEXT_SENTENCE, "probability": found.probabilities})
    rows["chosen"] = rows["piece"] == found.name
    bars, formula = st.columns(2)
    with bars:
        show_figure(
            decoding_figures.candidate_bars(
                rows, axis=p.text["class_axis"], row=p.text["class_row"], chosen_name=p.text["class_chosen"]
            ),
            name="next-sentence",
            caption=p.text["next_sentence_caption"],
            alt=p.text["class_alt"],
        )
    with formula:
        width, first = p.checkpoint.config.d_model, p.trace.source[0].display
        caption = p.text["next_sentence_formula_caption"].format(width=width, token=as_plain(first))
        show_formula(_NEXT_SENTENCE, caption=caption)
    show_snippet(
        "next sentence",
        f"{p.preamble}\nfrom transformer.runs.next_sentence import next_sentence\n\n"
        f"print(next_sentence(trace))  # {found.name} {found.probability:.7g}\n",
    )


def _show_candidates(p: Page, shown: FilledBlank) -> None:
    """Draw the most likely tokens at the position."""
    rows = pd.DataFrame([asdict(row) for row in shown.fillings.rows]).assign(
        chosen=shown.coloured,
        typed=[row is shown.masked and row is not shown.fillings.rows[0] for row in shown.fillings.rows],
    )
    size = whole(shown.checkpoint.config.vocabulary_size)
    show_figure(
        decoding_figures.candidate_bars(
            rows,
            rest=shown.fillings.rest,
            axis=p.text["blank_axis"],
            chosen_name=p.text["blank_chosen" if shown.blanks else "blank_stands"],
        ),
        name="candidates",
        caption=p.text["blank_caption"].format(vocabulary=size, position=shown.position),
        alt=p.text["candidates_alt"],
    )


def _show_formula(p: Page, shown: FilledBlank) -> None:
    """Show the formula from the vector of the position to the probabilities, with this model's shapes."""
    config, projection = shown.checkpoint.config, shown.checkpoint.model.encoder.vocabulary_projection
    matrix = ("E^\\top", "Eᵀ") if config.tie_embeddings else ("W", "W")
    head = (
        {"inner": projection.dense.out_features, "activation": config.head_activation}
        if isinstance(projection, TokenHead)
        else {}
    )
    show_formula(
        p.text["blank_formula"].format(logits=logits_formula(projection, f"h_{{{shown.position}}}", matrix[0])),
        caption=p.text["blank_formula_head" if head else "blank_formula_caption"].format(
            width=config.d_model,
            position=shown.position,
            matrix=matrix[1],
            vocabulary=whole(config.vocabulary_size),
            **head,
        ),
    )


def marked_position(p: Page) -> tuple[str, int]:
    """Return what the strip marks: the blank that is shown or, without a blank, the focused token."""
    found = blanks(p.trace)
    if not found:
        return "encoder", answered_position(p.trace, None, p.focus.token)
    first = first_blank(found, p.focus.token)
    options = {position: [] for position in found}
    return "encoder", choice.read_option("blank", options, first, owner=_owner_of_blank(p, found))


def _owner_of_blank(p: Page, positions: tuple[int, ...]) -> tuple:
    """Return the blank that the choice belongs to; focusing another blank shows that one."""
    return p.trace.source.ids, p.focus.token if p.focus.token in positions else None


def _choose_blank(p: Page) -> int | None:
    positions = blanks(p.trace)
    if len(positions) < 2:
        return None
    tokens = p.trace.source

    def name(position: int, text: PageText) -> str:
        before = tokens[position - 1]
        key = "blank_first" if before.special else "blank_name"
        return text[key].format(number=positions.index(position) + 1, text=as_plain(before.display))

    texts = page_texts(p.text.name)
    names = {position: [name(position, text) for text in texts] for position in positions}
    first = first_blank(positions, p.focus.token)
    return one_of(p.text["blank"], names, first, key="blank", owner=_owner_of_blank(p, positions), wrap=True)


def classify(p: Page) -> None:
    """Draw class probabilities, and what each word contributes to the class that is shown."""
    run = p.run
    found = jobs.result(
        run,
        "leave one out",
        lambda _: leave_one_out(run.checkpoint, run.sentence, pads=run.source_pads),
        doing=common("wait.leave_out"),
    )
    if found is None:  # stopped
        return
    shown = Verdict(run, location_of(p), DecodingChoices(), found)
    names = [without_pictures(name) for name in found.class_names]
    st.markdown(
        p.text["class_line"].format(
            count=len(names),
            name=as_plain(names[shown.best]),
            probability=three_digits(float(found.probabilities[shown.best])),
        )
        + uncertainty_note(p)
    )
    is_short = len(found.words) <= MOST_BESIDE
    classes, words = st.columns([2, 3], gap="medium") if is_short else (st.container(), st.container())
    with classes:
        _show_classes(p, shown, names)
    with words:
        shown = _show_contributions(p, shown, names)
    _show_formula_of_classes(p, shown)
    index = shown.class_index
    show_snippet(
        "classes",
        "import transformer\nfrom transformer.attribution.leave_one_out import leave_one_out\n\n"
        f"{p.load_line}"
        f"found = leave_one_out(checkpoint, {p.sentence!r})\n"
        f"print(found.probabilities[{index}])  # {found.probabilities[index]:.7g}\n"
        f"print([(word.text, float(share)) for word, share in zip(found.words, found.contributions[:, {index}])])\n",
    )


def _show_contributions(p: Page, shown: Verdict, names: list[str]) -> Verdict:
    """Draw what each word contributes to the chosen class, and return the verdict about that class."""
    st.subheader(p.text["contributions"], anchor=False)
    chosen = choice.buttons(
        p.text["contributions_of"],
        names,
        default=names[shown.best],
        key="class_shown",  # "class" is the code of a class of students
        owner=(p.checkpoint.fingerprint, p.sentence),
        wrap=True,
    )
    shown = replace(shown, choices=DecodingChoices(class_index=names.index(chosen)))
    words = [word.text for word in shown.found.words]
    tokens = p.trace.source
    has_ink = isinstance(p.checkpoint.config, PictureConfig) and len(tokens.patches) == len(words)
    if has_ink:
        figure = decoding_figures.patch_contributions(shown.contributions, ink=_ink_of(tokens), names=words, of=chosen)
    else:
        figure = decoding_figures.word_contributions(
            shown.contributions, words=words, of=chosen, are_patches=p.reads_pictures
        )
    if has_ink and (largest := _empty_patch(shown, _ink_of(tokens))) is not None:
        value = three_digits(float(shown.contributions[largest]))
        st.markdown(p.text["empty_patch"].format(patch=words[largest], name=as_plain(chosen), value=value))
    show_figure(
        figure,
        name="word-contributions",
        caption=p.text["contributions_caption"].format(count=len(words), name=as_plain(chosen)),
        alt=p.text["contributions_alt"],
    )
    return shown


def _ink_of(tokens: TokenSequence) -> np.ndarray:
    """Return the ink of every patch of an image, 0 to 1: [patch, row, column]."""
    size = round(len(tokens[tokens.patches[0]].pixels) ** 0.5)
    return np.array([tokens[at].pixels for at in tokens.patches], dtype=float).reshape(-1, size, size)


def _empty_patch(shown: Verdict, ink: np.ndarray) -> int | None:
    """Return the patch on which the class depends most, if that patch is white."""
    most = int(shown.contributions.argmax())
    return most if ink[most].max() == 0 and shown.contributions[most] > 0 else None


def _show_classes(p: Page, shown: Verdict, names: list[str]) -> None:
    """Draw the probability of each class."""
    rows = pd.DataFrame({"piece": names, "probability": shown.found.probabilities})
    rows["chosen"] = rows.index == shown.best
    show_figure(
        decoding_figures.candidate_bars(
            rows,
            axis=p.text["class_axis"],
            row=p.text["class_row"],
            chosen_name=p.text["class_chosen"],
            other_name=p.text["class_other"],
        ),
        name="classes",
        caption=p.text["class_caption"].format(count=len(names)),
        alt=p.text["class_alt"],
    )


def _show_formula_of_classes(p: Page, shown: Verdict) -> None:
    """Show the formula from the encoder's vectors to the class probabilities, with its shapes."""
    config = shown.checkpoint.config
    first = isinstance(shown.checkpoint.model.classifier, FirstTokenClassifier)
    show_formula(
        p.text["class_formula_first" if first else "class_formula"],
        caption=p.text["class_formula_first_caption" if first else "class_formula_caption"].format(
            tokens=len(p.trace.source) - p.focus.pads,
            width=config.d_model,
            count=len(shown.found.class_names),
            activation=config.head_activation if first else "",
        ),
    )
