"""The first step and the last: the model with its output, and the output computed from logits."""

import json
from pathlib import Path

import numpy as np

from charts.canvas.value_map import value_map
from charts.canvas.written_steps import StepBars, written_steps
from charts.documents.document_parts import Cards, Drawing, Live, Paragraph, Part, Section
from charts.toolkit.style import three_digits, three_digits_alike
from charts.toolkit.words import _
from transformer import Decoding, decode
from transformer.predictions.answer_probabilities import blanks, fillings, read_answer, shown_classes
from transformer.predictions.decoding_steps import likeliest, n_forced, rank, step_attention
from transformer.predictions.living_picture_numbers import layers_within, living_picture_numbers
from transformer.runs.inputs import prompt_of
from transformer.runs.traces import Trace
from ui.shell.focus import Focus
from ui.shell.selectors import text_for, work_of
from ui.show.living_picture import living_picture_figure
from ui.words.texts import as_plain, common, page_text
from views.overview import diagram
from views.overview.handout.writing import every_cell, handout_text, named, section, written

MAX_INSIDE = 50_000  # numbers of expanded layers in the living picture, four bytes each
_SHOWN = 8  # candidates of a step
_PAGES = ("tokens", "embeddings", "positions", "attention", "heads", "add_norm", "feed_forward", "decoding")
_DRAWING = Path(diagram.__file__).parent


def overview(trace: Trace, focus: Focus) -> Section:
    """Return the sentence, the output with probabilities, and the model as a diagram with links."""
    config, answer = trace.checkpoint.config, read_answer(trace)
    page = text_for(page_text("overview"), config)
    caption = page["forced"] if trace.forced else page[f"answers.{work_of(config)}"]
    said = as_plain(" ".join(answer.text.split())) or common("effect.empty")
    parts: list[Part] = [
        Paragraph(named(page["typed"], f"**{as_plain(' '.join(trace.sentence.split()))}**")),
        Paragraph(named(caption, f"**{said}**") if answer.parts else page["no_blank"]),
    ]
    inside = layers_within(trace, MAX_INSIDE)
    parts += [Drawing(living_picture_figure(living_picture_numbers(trace, inside=inside), trace, focus, links=False))]
    listed = shown_classes(trace) if config.n_classes else answer.parts
    if listed:
        shares = three_digits_alike(part.probability for part in listed)
        cards = tuple((part.display, share, False) for part, share in zip(listed, shares, strict=True))
        bars = "bars" if config.has_decoder else "bars_class" if config.n_classes else "bars_blanks"
        parts += [Cards(cards), Paragraph(page[bars], kind="hint")]
    parts += [_diagram(trace, focus), Paragraph(handout_text()["diagram"], kind="hint")]
    return section("overview", trace, parts, look_for=(0,))


def _diagram(trace: Trace, focus: Focus) -> Live:
    """Return the app's diagram; a click on a block goes to its step."""
    stacks = diagram.model_stacks(trace.checkpoint.config, trace, layer=focus.layer)
    data = diagram.diagram_data(stacks, trace, pages=_PAGES)
    for column in data["columns"]:  # the diagram shows one layer here, which cannot be changed
        column |= {"n_layers": 0, "layer_text": f"{common('diagram.layer')} {column['layer']}"}
    leads = {block.id: block.page for stack in stacks for block in stack.blocks}
    drawn = (_DRAWING / "diagram.js").read_text(encoding="utf-8").replace("export default function", "function draw")
    style = (_DRAWING / "diagram.css").read_text(encoding="utf-8")
    # User text is inside strings of JavaScript, without a < that could end the script.
    given = ", ".join(json.dumps(part).replace("<", "\\u003c") for part in (data, style, leads))
    return Live(
        "diagram",
        f"{drawn}\n(function (data, style, leads) {{\n"
        '  const parentElement = document.getElementById("diagram").attachShadow({ mode: "open" });\n'
        '  parentElement.append(Object.assign(document.createElement("style"), { textContent: style }));\n'
        "  draw({ parentElement, data, setTriggerValue: (_, id) => (location.hash = leads[id]) });\n"
        f"}})({given});\n",
    )


def decoding(trace: Trace, focus: Focus) -> Section:
    """Return logits and the choice made from them, by the kind of the model's output."""
    config = trace.checkpoint.config
    if config.has_decoder:
        return section("decoding", trace, _text_written(trace, focus), look_for=(0, 1))
    return section("decoding", trace, _classes(trace) if config.n_classes else _blanks(trace))


def _text_written(trace: Trace, focus: Focus) -> list[Part]:
    text = handout_text()
    forced = trace.run.target or ""
    arguments = {"forced": forced, "source_pads": trace.run.source_pads, "record_steps": True}
    found = decode(trace.checkpoint, trace.sentence, **arguments)
    rows = []
    for step in found.steps:
        listed = likeliest(step, shown=_SHOWN)
        logits = np.array([candidate.logit for candidate in listed])
        # The model's own probability p = exp(z − z_max) / Z gives Z, whatever it excludes from the vocabulary.
        total = np.exp(float(listed[0].logit) - logits.max()) / listed[0].probability
        rows.append((step.chosen.display, [candidate.display for candidate in listed], logits, float(total)))
    return [
        Paragraph(text["logits"].format(vocabulary=trace.checkpoint.config.vocabulary_size)),
        _logit_map(rows),
        Paragraph(text["steps"]),
        _steps(trace, focus, found, n_given=n_forced(trace.checkpoint, forced, trace.sentence)),
        *([Paragraph(text["forced"], kind="hint")] if forced else []),
    ]


def _logit_map(rows: list[tuple[str, list[str], np.ndarray, float]]) -> Drawing:
    """Return rows (label, candidates, their logits, Z), largest first; a click opens the softmax."""
    text = handout_text()

    def lines(row: int, column: int) -> list[str]:
        _label, names, logits, total = rows[row]
        z, largest = float(logits[column]), float(logits.max())
        power = float(np.exp(z - largest))
        return [
            _("‘{token}’", token=names[column]) + f": z = {written(z)}",
            f"p = exp(z − z_max) / Z = exp({written(z)} − {written(largest)}) / {written(total)} = {written(power)} / "
            f"{written(total)} = {written(power / total)}",
        ]

    values = np.stack([logits for _label, _names, logits, _total in rows])
    figure = value_map(
        values,
        row_labels=[f"{place + 1} {label}" for place, (label, *_rest) in enumerate(rows)],
        column_labels=[str(place + 1) for place in range(values.shape[1])],
        row_title=text["step"],
        column_title=text["place"],
        title=text["logits_title"],
        value_name=text["logit"],
        phrase=("", f" · {text['place']} "),
    )
    return Drawing(figure, every_cell(values.shape, lines))


def _steps(trace: Trace, focus: Focus, found: Decoding, *, n_given: int) -> Drawing:
    """Return the steps of the Decoding page: greedy, with the mean of all heads of the layer."""
    checkpoint, page, text = trace.checkpoint, page_text("decoding"), handout_text()
    layer = min(focus.layer, checkpoint.config.n_decoder_layers - 1)
    kind = "cross" if checkpoint.config.has_encoder else "self"
    bars = []
    for step in found.steps:
        seen = step_attention(checkpoint, found, trace.sentence, step=step.index, layer=layer, kind=kind)
        listed, chosen = likeliest(step, shown=_SHOWN), step.chosen
        template = text["comes_given" if step.index < n_given else "comes"]
        said = template.format(token=chosen.display, probability=three_digits(chosen.probability))
        bars.append(
            StepBars(
                said=(said,),
                candidates=tuple(candidate.display for candidate in listed),
                probabilities=tuple(candidate.probability for candidate in listed),
                rest=max(0.0, 1.0 - sum(candidate.probability for candidate in listed)),
                chosen=[candidate.id for candidate in listed].index(chosen.id),
                weights=seen.of(None),
                allowed=seen.allowed,
                rank=rank(step),
            )
        )
    of = page["attention_of_mean"].format(layer=layer, count=checkpoint.config.heads_in("decoder"))
    before = checkpoint.tokenizer.sequence(prompt_of(checkpoint, trace.sentence))
    return Drawing(written_steps(bars, tokens=found.tokens, key=seen.key, of=of, before=before, n_given=n_given))


def _classes(trace: Trace) -> list[Part]:
    text, logits = handout_text(), trace.values("classifier.logits").astype(np.float64)
    names = list(trace.checkpoint.config.class_names)
    order = np.argsort(-logits, kind="stable")
    total = float(np.exp(logits - logits.max()).sum())
    row = (text["verdict"], [names[place] for place in order], logits[order], total)
    return [Paragraph(text["classes"]), _logit_map([row]), Paragraph(text["no_steps"], kind="hint")]


def _blanks(trace: Trace) -> list[Part]:
    text, rows, parts = handout_text(), [], []
    for position in blanks(trace):
        found = fillings(trace, position, shown=_SHOWN)
        logits = np.array([row.logit for row in found.rows])
        total = float(np.exp(logits[0] - logits.max()) / found.rows[0].probability)
        label = trace.source.labels[position]
        rows.append((label, [row.piece for row in found.rows], logits, total))
        shares = three_digits_alike(row.probability for row in found.rows)
        parts.append(Cards(tuple((row.piece, share, False) for row, share in zip(found.rows, shares, strict=True))))
    if not rows:
        return [Paragraph(page_text("overview")["no_blank"])]
    return [Paragraph(text["blanks"]), _logit_map(rows), *parts, Paragraph(text["no_steps"], kind="hint")]
