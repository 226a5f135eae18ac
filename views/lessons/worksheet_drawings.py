"""The figures on a worksheet and its key: for every question a canvas figure or cards of its subject.

``p`` is the Lessons page, for its texts.
"""

import logging
from collections.abc import Sequence

import numpy as np

import transformer
from charts.canvas.attention_maps import KEY_TITLE, attention_grid, attention_map, predicted_rows, row_title
from charts.canvas.figure import CanvasFigure
from charts.canvas.value_map import value_map
from charts.documents.document_parts import Cards, Drawing, Figure, Grid, Part, Table
from charts.toolkit.style import three_digits
from charts.toolkit.words import localize, say
from transformer import Trace
from transformer.attention_maps.attention_path import attention_path, output_sum
from transformer.faults.catalogue import diagnosis_of
from transformer.faults.fault_checks import checked_model
from transformer.predictions.answer_probabilities import read_answer
from transformer.predictions.lens import logit_lens
from ui.page.page import Page
from ui.shell.fitting import fit_model, fit_trace
from ui.shell.focus import Focus
from ui.shell.guidance.lessons import Lesson, Step

_LOG = logging.getLogger(__name__)
_OF_VECTORS = {"embeddings": "token", "positions": "position", "add_norm": "sum", "feed_forward": "sum"}
_WIDTH = 32  # dimensions drawn
_MAX_CARDS = 40
_ROW, _AROUND = 24, 130  # pixels of a row, and of title, labels and legend: lower than on the screen, to save paper


def step_figures(p: Page, lesson: Lesson, focus: Focus) -> tuple[Sequence[Part], ...]:
    """Draw the subject of every step with a question; any ``focus`` will do, since each step sets its own."""
    return tuple(
        framed_figure(p, step.page, step.focused(focus, default=Focus(checkpoint=focus.checkpoint)), step)
        if step.question
        else ()
        for step in lesson.steps
    )


def framed_figure(p: Page, page: str, focus: Focus, step: Step | None = None) -> Sequence[Part]:
    """Draw the figure; none if the view has none (no such checkpoint, a text that it cannot read)."""
    try:
        view = Page(page, focus)
        view.focus, _notes = fit_model(focus, view.checkpoint.config)
        view.focus, _notes = fit_trace(view.focus, view.trace)
        return [figure_of(p, page, view.focus, view.trace, step)]
    except Exception:
        _LOG.exception("a worksheet goes without its figure")
        return []


def figure_of(p: Page, page: str, focus: Focus, trace: Trace, step: Step | None = None) -> Part:
    """Draw what ``step`` reveals, else the subject of its page, else the map of the focused head."""
    part = step.figure if step else ""
    if part in PARTS:
        return _low(PARTS[part](p, focus, trace))
    if page in ("overview", "tokens"):
        cards = [(token.display, str(token.id), token.special) for token in trace.tokens(focus.stack)]
        return _cards(cards, p.words("figure_ids"))
    if part == "text greedy":
        return _strategies(p, trace)
    if page == "decoding":
        return _answer(p, trace)
    if page == "lens":
        return _lens(p, trace)
    if page == "heads":
        views = [trace.attention(focus.stack, layer, focus.kind) for layer in range(trace.n_layers(focus.stack))]
        return Drawing(attention_grid(views, selected=(focus.layer, focus.head)))
    if page == "lessons" and step and "patient" in step.options:
        fault = diagnosis_of(int(step.options["patient"]), trace.checkpoint.config).fault
        edited = transformer.trace(
            trace.checkpoint, trace.sentence, target=trace.text, edits=checked_model(trace, fault).edits
        )
        both = {"healthy": trace, "case": edited}
        return Grid([_low(_map(focus, one, title=p.words(f"figure_{name}"))) for name, one in both.items()], "pair")
    name = f"{focus.stack}.embedding.{_vectors(page, step)}"
    if name in trace:
        return _low(_vectors_of(p, trace, focus, name))
    return _low(_map(focus, trace))


def _low(figure: CanvasFigure) -> Drawing:
    """Draw a map with rows that are just high enough to be read."""
    return Drawing(figure.with_metadata(height=_AROUND + _ROW * len(figure.metadata["rows"])))


def _vectors(page: str, step: Step | None) -> str:
    """Return the embedding vectors that the page, or this view of Positions, is about; "" for none."""
    if page == "positions" and step and step.options.get("positions view") == "sum":
        return "sum"
    return _OF_VECTORS.get(page, "")


def _map(focus: Focus, trace: Trace, *, title: str = "") -> CanvasFigure:
    view = trace.attention(focus.stack, focus.layer, focus.kind)
    drawn = attention_map(
        view,
        head=focus.head,
        shifted_labels=predicted_rows(trace, view.kind),
        chosen_row=min(focus.token, len(view.query) - 1),
    )
    return drawn.with_metadata(title=f"{title}: {drawn.metadata['title']}") if title else drawn


def _vectors_of(p: Page, trace: Trace, focus: Focus, name: str) -> CanvasFigure:
    values = trace.values(name)
    title = p.words(
        f"figure_{name.rsplit('.', 1)[1]}", shown=min(_WIDTH, values.shape[1]), width=values.shape[1]
    )  # fmt: skip
    return _numbers(p, values[:, :_WIDTH], trace.tokens(focus.stack).labels, p.words("figure_columns"), title)


def _numbers(p: Page, values: np.ndarray, rows: Sequence[str], column: str, title: str) -> CanvasFigure:
    return value_map(
        values,
        row_labels=rows,
        column_labels=[str(number) for number in range(values.shape[1])],
        row_title=p.words("figure_rows"),
        column_title=column,
        title=title,
        value_name=p.words("figure_value"),
        phrase=("", f" · {column} "),
    )


def _path(focus: Focus, trace: Trace):
    return attention_path(trace, focus.stack, focus.layer, focus.kind, head=focus.head)


def _queries(p: Page, focus: Focus, trace: Trace) -> CanvasFigure:
    path = _path(focus, trace)
    return _numbers(p, path.query, path.view.query.labels, p.words("figure_channel"), p.words("figure_query"))


def _values(p: Page, focus: Focus, trace: Trace) -> CanvasFigure:
    path = _path(focus, trace)
    weights = path.weights[focus.token]
    rows = [
        f"{three_digits(float(weight))} × {label}" for weight, label in zip(weights, path.view.key.labels, strict=True)
    ]
    return _numbers(p, path.value, rows, p.words("figure_channel"), p.words("figure_mix"))


def _scores(p: Page, focus: Focus, trace: Trace) -> CanvasFigure:
    path = _path(focus, trace)
    return value_map(
        path.scores,
        row_labels=path.view.query.labels,
        column_labels=path.view.key.labels,
        row_title=row_title(),
        column_title=KEY_TITLE,
        title=p.words("figure_scores"),
        value_name=say("names.score"),
        allowed=path.view.allowed,
        chosen_row=focus.token,
    )


def _softmax(p: Page, focus: Focus, trace: Trace) -> CanvasFigure:
    """Draw one row three times: scores, their exponentials, the weights."""
    path = _path(focus, trace)
    scores = path.scores[focus.token].astype(np.float64)
    powers = np.exp(scores - scores.max())
    return value_map(
        np.stack([scores, powers, path.weights[focus.token]]),
        row_labels=[say("names.score"), say("names.power"), say("names.weight")],
        column_labels=path.view.key.labels,
        column_title=KEY_TITLE,
        row_title="",
        title=p.words("figure_softmax", row=path.view.query.labels[focus.token]),
        value_name=p.words("figure_value"),
        allowed=np.tile(path.view.allowed[focus.token], (3, 1)),
    )


def _heads_add_up(p: Page, focus: Focus, trace: Trace) -> CanvasFigure:
    parts = output_sum(trace, focus.stack, focus.layer, focus.kind, row=focus.token)
    rows = [say("names.numbered_head", head=head) for head in range(len(parts.contributions))]
    values = np.vstack([parts.contributions, parts.output])[:, :_WIDTH]
    title = p.words("figure_heads", shown=values.shape[1], width=len(parts.output))
    return _numbers(p, values, [*rows, say("names.sum")], p.words("figure_columns"), title)


PARTS = {
    "attention projections": _queries,
    "attention path": _scores,
    "chart softmax-of-one-row": _softmax,
    "chart weights-times-values": _values,
    "chart heads-add-up": _heads_add_up,
}


def _answer(p: Page, trace: Trace) -> Part:
    """Draw the output token by token; for a decoder, with the second most probable token."""
    parts = read_answer(trace).parts
    second = [""] * len(parts)
    if trace.checkpoint.config.has_decoder and not trace.forced:
        seconds = (step.candidates[1] for step in transformer.decode(trace.checkpoint, trace.sentence).steps)
        second = [f" ({each.display} {three_digits(each.probability)})" for each in seconds]
    cards = [
        (part.display, three_digits(part.probability) + other, False)
        for part, other in zip(parts, second, strict=False)
    ]
    return _cards(cards, p.words("figure_answer"))


def _strategies(p: Page, trace: Trace) -> Part:
    """Draw the texts of greedy decoding and beam search with their log-probabilities."""
    rows = []
    for name, strategy in {"greedy": transformer.Greedy(), "beam": transformer.Beam(width=4)}.items():
        found = transformer.decode(trace.checkpoint, trace.sentence, strategy)
        rows.append((f"{p.words(f'figure_{name}')} (Σ log p = {three_digits(found.log_probability)})", found.text))
    return Table((), rows)


def _cards(cards: Sequence[tuple[str, str, bool]], caption: str) -> Figure:
    """Draw words with a number below each; ``True``: emphasised."""
    more = [("…", "", True)] if len(cards) > _MAX_CARDS else []
    return Figure(Cards([*cards[:_MAX_CARDS], *more]), caption)


def _lens(p: Page, trace: Trace) -> Figure:
    """Draw the prediction of every layer at every position, the last layer at the top."""
    lens = logit_lens(trace)
    rows = [(localize(step), *words) for step, words in reversed(list(zip(lens.steps, lens.words, strict=True)))]
    return Figure(Table((), [*rows, (p.words("figure_read"), *lens.read)]), p.words("figure_lens"))
