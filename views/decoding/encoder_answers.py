"""What models that do not write answer: words for blanks, and classes with the share that each word has in them."""

from dataclasses import asdict

import pandas as pd
import streamlit as st

from charts.toolkit.numbers import whole
from charts.toolkit.style import three_digits
from transformer.attribution.leave_one_out import leave_one_out
from transformer.predictions.answer_probabilities import blanks, filled, fillings
from transformer.predictions.decoding_steps import StepAttention
from transformer.runs.attention_view import AttentionView
from transformer.variants.output_heads import FirstTokenClassifier, TokenHead
from ui.compute.jobs import jobs
from ui.shell import choice, page_state
from ui.shell.choice import one_of
from ui.shell.page import Page
from ui.show.figures import show_figure, show_formula, show_snippet
from ui.words.model_terms import logits_formula
from ui.words.texts import PageText, as_plain, common, page_texts, without_pictures
from views.decoding import candidate_figures
from views.decoding.attention_choice import choose_heads, settle
from views.decoding.generation import show_attention
from views.decoding.word_contributions_figure import word_contributions

_EXAMPLE = "`The ___ sat on the mat`"
_FOLLOWED = "blank: focused token"  # of the run before


def fill_blanks(p: Page) -> None:
    """Candidates for the chosen blank; without a blank, for the focused token."""
    trace, config = p.trace, p.checkpoint.config
    found = blanks(trace)
    position = _choose_blank(p, found) if found else p.focus.token
    filling = fillings(trace, position)
    best = filling.rows[0]
    if found:
        st.markdown(
            p.text["blank_line"].format(
                token=as_plain(best.piece),
                probability=three_digits(best.probability),
                filled=as_plain(filled(trace)),
            )
        )
    else:
        st.info(
            p.text["no_blank"].format(example=_EXAMPLE, token=as_plain(trace.source[position].display)),
            icon=":material/edit:",
        )
    rows = pd.DataFrame([asdict(row) for row in filling.rows])
    rows["chosen"] = rows["stands_there"] if not found else rows.index == 0
    left, right = st.columns(2)
    with left:
        show_figure(
            candidate_figures.candidate_bars(
                rows,
                rest=filling.rest,
                axis=p.text["blank_axis"],
                chosen_name=p.text["blank_chosen" if found else "blank_stands"],
            ),
            name="candidates",
            caption=p.text["blank_caption"].format(vocabulary=whole(config.vocabulary_size), position=position),
            alt=p.text["candidates_alt"],
        )
    with right:
        _attention(p, trace.attention("encoder", p.focus.layer), position)
    matrix = ("E^\\top", "Eᵀ") if config.tie_embeddings else ("W", "W")
    projection = p.checkpoint.model.encoder.vocabulary_projection
    head = (
        {"inner": projection.dense.out_features, "activation": config.head_activation}
        if isinstance(projection, TokenHead)
        else {}
    )
    show_formula(
        p.text["blank_formula"].format(logits=logits_formula(projection, f"h_{{{position}}}", matrix[0])),
        caption=p.text["blank_formula_head" if head else "blank_formula_caption"].format(
            width=config.d_model, position=position, matrix=matrix[1], vocabulary=whole(config.vocabulary_size), **head
        ),
    )
    show_snippet(
        "encoder answers",
        f"import torch\n{p.preamble}\n"
        f'logits = torch.tensor(trace.values("encoder.logits")[{position}])\n'
        f"probabilities = logits.softmax(-1)\n"
        f"print(probabilities[{best.id}].item())  # {best.piece} {best.probability:.7g}\n",
    )


def place_of(p: Page) -> tuple[str, int]:
    """What the strip marks: the blank that is answered, or, where there is none, the focused token. A click on another
    blank chooses it."""
    found = blanks(p.trace)
    if not found:
        return "encoder", p.focus.token
    before, st.session_state[_FOLLOWED] = st.session_state.get(_FOLLOWED), p.focus.token
    if p.focus.token in found and p.focus.token != before and not page_state.is_brought("blank"):
        choice.put("blank", p.focus.token)
    asked = choice.value("blank")
    return "encoder", next((position for position in found if str(position) == asked), found[0])


def _choose_blank(p: Page, positions: tuple[int, ...]) -> int:
    if len(positions) == 1:
        return positions[0]
    tokens = p.trace.source

    def name(position: int, text: PageText) -> str:
        before = tokens[position - 1]
        key = "blank_first" if before.special else "blank_name"
        return text[key].format(number=positions.index(position) + 1, text=as_plain(before.display))

    texts = page_texts(p.text.name)
    names = {position: [name(position, text) for text in texts] for position in positions}
    return one_of(p.text["blank"], names, key="blank", owner=p.trace.source.ids, wrap=True)


def _attention(p: Page, view: AttentionView, position: int) -> None:
    figure = st.container()
    head = choose_heads(p)
    settle("layer", *(["head"] if head is not None else []))
    found = StepAttention(view.weights[:, position], view.allowed[position], view.key)
    with figure:
        caption = p.text["blank_attention_caption"].format(position=position, layer=view.layer)
        show_attention(p, found, layer=view.layer, head=head, name="attention-of-the-position", caption=caption)


def classify(p: Page) -> None:
    """Class probabilities, and what each word contributes to the class that is looked at."""
    config = p.checkpoint.config
    run = p.run
    found = jobs.result(
        run,
        "leave one out",
        lambda _: leave_one_out(run.checkpoint, run.sentence, pads=run.source_pads),
        doing=common("wait.leave_out"),
    )
    if found is None:  # stopped
        return
    names, verdict = [without_pictures(name) for name in found.class_names], int(found.probabilities.argmax())
    st.markdown(
        p.text["class_line"].format(
            count=len(names),
            name=as_plain(names[verdict]),
            probability=three_digits(float(found.probabilities[verdict])),
        )
    )
    rows = pd.DataFrame({"piece": names, "probability": found.probabilities})
    rows["chosen"] = rows.index == verdict
    show_figure(
        candidate_figures.candidate_bars(
            rows, axis=p.text["class_axis"], row=p.text["class_row"], chosen_name=p.text["class_chosen"]
        ),
        name="classes",
        caption=p.text["class_caption"].format(count=len(names)),
        alt=p.text["class_alt"],
    )
    st.subheader(p.text["contributions"], anchor=False)
    chosen = choice.buttons(
        p.text["contributions_of"],
        names,
        default=names[verdict],
        key="class",
        owner=(p.checkpoint.fingerprint, p.focus.sentence),
        wrap=True,
    )
    index = names.index(chosen)
    words = [word.text for word in found.words]
    show_figure(
        word_contributions(found.contributions[:, index], words=words, of=names[index]),
        name="word-contributions",
        caption=p.text["contributions_caption"].format(count=len(words), name=as_plain(names[index])),
        alt=p.text["contributions_alt"],
    )
    first = isinstance(p.checkpoint.model.classifier, FirstTokenClassifier)
    show_formula(
        p.text["class_formula_first" if first else "class_formula"],
        caption=p.text["class_formula_first_caption" if first else "class_formula_caption"].format(
            tokens=len(p.trace.source) - p.focus.pads,
            width=config.d_model,
            count=len(names),
            activation=config.head_activation if first else "",
        ),
    )
    show_snippet(
        "classes",
        "import transformer\nfrom transformer.attribution.leave_one_out import leave_one_out\n\n"
        f"{p.load_line}"
        f"found = leave_one_out(checkpoint, {p.focus.sentence!r})\n"
        f"print(found.probabilities[{index}])  # {found.probabilities[index]:.7g}\n"
        f"print([(word.text, float(share)) for word, share in zip(found.words, found.contributions[:, {index}])])\n",
    )
