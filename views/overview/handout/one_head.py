"""One head in seven steps: each with its sentence and a map whose cells open their arithmetic."""

from functools import partial

import numpy as np

from charts.canvas.attention_maps import KEY_TITLE, attention_map, row_title, title_of
from charts.canvas.value_map import value_map
from charts.documents.document_parts import Drawing, Paragraph, Part, Section, Views
from charts.toolkit.numbers import whole
from charts.toolkit.style import three_digits
from charts.toolkit.words import _
from transformer.attention_maps.attention_arithmetic import CellArithmetic, ScoreRule, why_masked
from transformer.attention_maps.attention_path import AttentionPath, attention_path, output_sum
from transformer.layers.positional_encodings import rotary_of
from transformer.runs.traces import Trace
from transformer.text.message import N_
from ui.shell.focus import Focus
from ui.words.model_terms import rotary_words
from ui.words.texts import as_plain, page_text
from views.overview.handout.writing import every_cell, factor, handout_text, section, vectors, written

MAX_CELLS = 2_500  # more cells would make the file too large for a phone
_PAIRS = 3  # products that are written out
PRODUCTS, SCORES, MASKED, WEIGHTS = range(4)  # the number of steps of a cell's arithmetic
Cells = list[list[list[list[str]]]]  # [row][column][step]: lines


def attention(trace: Trace, focus: Focus) -> Section:
    """Return the section of the focused head."""
    page, text = page_text("attention"), handout_text()
    path = attention_path(trace, focus.stack, focus.layer, focus.kind, head=focus.head)
    names = list(page["steps"])
    if not path.rule.is_of_the_paper:
        names[2] = page["step_3_own"]
    steps = (_projections, _products, _scaled, _masked, _weights, _mix, _output)
    few = path.products.size <= MAX_CELLS
    cells = every_cell(path.products.shape, partial(_stages, path)) if few else []
    views = tuple((name, tuple(make(trace, focus, path, cells))) for name, make in zip(names, steps, strict=True))
    lead = text["head"].format(place=title_of(path.view, head=path.head), row=_row(path, focus.token))
    hint = text["no_arithmetic"].format(cells=whole(path.products.size), most=whole(MAX_CELLS))
    parts = [Paragraph(lead), *([] if few else [Paragraph(hint, kind="hint")])]
    return section("attention", trace, [*parts, Views("steps", page["step"], views)], look_for=(0, 1))


def _row(path: AttentionPath, row: int) -> str:
    return as_plain(path.view.query.labels[row])


def _projections(trace: Trace, focus: Focus, path: AttentionPath, cells: Cells) -> list[Part]:
    page, rule = page_text("attention"), path.rule
    module = trace.checkpoint.model.get_submodule(path.view.name)
    said = [
        page["step_1" if module.query_projection.bias is not None else "step_1_unbiased"].format(d_head=path.d_head)
    ]
    if rule.heads_a_key > 1:
        said.append(page["step_1_grouped"].format(heads=rule.heads_a_key))
    if rule.normalized:
        said.append(page["step_1_query_norm"])
    if path.view.kind == "cross":
        said.append(page["step_1_cross"])
    if trace.checkpoint.config.positions == "rotary" and path.view.kind == "self":
        said.append(rotary_words(page, "arithmetic_rotary", rotary_of(module).attention_factor))
    labels = {"query": path.view.query.labels, "key": path.view.key.labels, "value": path.view.key.labels}
    maps = [
        vectors(getattr(path, name), rows, title=page[f"title_{name}"], column=page["channel"])
        for name, rows in labels.items()
    ]
    return [*map(Paragraph, said), *maps]


def _products(trace: Trace, focus: Focus, path: AttentionPath, cells: Cells) -> list[Part]:
    return [
        Paragraph(page_text("attention")["step_2"]),
        Paragraph("q · k = Σ_c q_c · k_c", kind="formula"),
        _cells(focus, path, cells, path.products, name="q·k", until=PRODUCTS),
    ]


def _scaled(trace: Trace, focus: Focus, path: AttentionPath, cells: Cells) -> list[Part]:
    page, rule, row = page_text("attention"), path.rule, focus.token
    key = "step_3" if rule.radicand == path.d_head else "step_3_scale" if rule.is_scaled else "step_3_unscaled"
    said = [
        page[key].format(
            d_head=path.d_head,
            root=three_digits(path.d_head**0.5),
            scale=three_digits(rule.scale),
            row=_row(path, row),
            without=three_digits(float(path.weights_without_scaling(row).max())),
            **{"with": three_digits(float(path.weights[row].max()))},
        )
    ]
    if path.bias is not None:
        relative = rule.added[0].endswith("position_bias.values")
        said.append(page["step_3_bias" if relative else "step_3_disentangled"])
    if rule.cap is not None:
        said.append(page["step_3_cap"].format(cap=three_digits(rule.cap)))
    return [
        *map(Paragraph, said),
        Paragraph(f"s = {_rule_in_words(rule, bias=path.bias is not None)}", kind="formula"),
        _cells(focus, path, cells, path.scores, name=handout_text()["score"], until=SCORES),
    ]


def _rule_in_words(rule: ScoreRule, *, bias: bool) -> str:
    """Return the name of the score: "q·k / √d_k" in the paper."""
    score = "q·k"
    if rule.is_scaled:
        root = "d_k" if rule.radicand == rule.d_head else rule.radicand
        score = f"q·k × {written(rule.scale)}" if rule.radicand is None else f"q·k / √{root}"
    score += " + b" if bias else ""
    return score if rule.cap is None else f"{written(rule.cap)} · tanh(({score}) / {written(rule.cap)})"


def _masked(trace: Trace, focus: Focus, path: AttentionPath, cells: Cells) -> list[Part]:
    text, masked = handout_text(), int((~path.view.allowed).sum())
    sentence = page_text("attention")["step_4_never"]
    if masked:
        sentence = text["masked"].format(masked=masked, cells=path.view.allowed.size)
    name = text["score"]
    return [Paragraph(sentence), _cells(focus, path, cells, path.scores, name=name, until=MASKED, hatched=True)]


def _weights(trace: Trace, focus: Focus, path: AttentionPath, cells: Cells) -> list[Part]:
    figure = attention_map(path.view, head=path.head, chosen_row=focus.token)
    return [
        Paragraph(handout_text()["softmax"]),
        Paragraph("α = exp(s − s_max) / Z,   Z = Σ exp(s − s_max)", kind="formula"),
        Drawing(figure, _until(cells, WEIGHTS)),
    ]


def _mix(trace: Trace, focus: Focus, path: AttentionPath, cells: Cells) -> list[Part]:
    text, weights = handout_text(), path.weights

    def lines(row: int, channel: int) -> list[str]:
        order = np.argsort(-weights[row], kind="stable")
        listed = sorted(int(key) for key in order[:_PAIRS])
        products = [f"{written(weights[row, key])} · {factor(path.value[key, channel])}" for key in listed]
        if len(order) > _PAIRS:
            products.append("…")
        tokens = ", ".join(_("‘{token}’", token=path.view.key.labels[key]) for key in listed)
        return [
            text["mix_of"].format(tokens=tokens),
            f"Σ_j α_j · v_j = {' + '.join(products)} = {written(path.context[row, channel])}",
        ]

    rows, channel = path.view.query.labels, page_text("attention")["channel"]
    return [
        Paragraph(text["mix"]),
        vectors(path.context, rows, title=text["mix_title"], lines=lines, column=channel),
    ]


def _output(trace: Trace, focus: Focus, path: AttentionPath, cells: Cells) -> list[Part]:
    page, text, row = page_text("attention"), handout_text(), focus.token
    parts = output_sum(trace, focus.stack, focus.layer, focus.kind, row=row)
    said = page["step_7" if parts.bias is not None else "step_7_unbiased"].format(
        d_head=path.d_head,
        d_model=trace.checkpoint.config.d_model,
        row=_row(path, row),
        head=path.head,
        length=three_digits(float(np.linalg.norm(parts.contributions[path.head]))),
        total=three_digits(float(np.linalg.norm(parts.output))),
    )
    heads = [text["of_head"].format(head=head) for head in range(len(parts.contributions))]
    summands = [*parts.contributions, *([] if parts.bias is None else [parts.bias])]
    names = [*heads, *([] if parts.bias is None else ["b_O"])]

    def lines(_row: int, column: int) -> list[str]:
        added = " + ".join(factor(part[column]) for part in summands)
        return [f"{added} = {written(parts.output[column])}"]

    drawn = np.stack([*summands, parts.output])
    return [Paragraph(said), vectors(drawn, [*names, text["output"]], title=text["output_title"], lines=lines)]


def _until(cells: Cells, until: int) -> list[list[list[str]]]:
    return [[stages[until] for stages in row] for row in cells]


def _cells(
    focus: Focus, path: AttentionPath, cells: Cells, values: np.ndarray, *, name: str, until: int, hatched: bool = False
) -> Drawing:
    figure = value_map(
        values,
        row_labels=path.view.query.labels,
        column_labels=path.view.key.labels,
        row_title=row_title(),
        column_title=KEY_TITLE,
        allowed=path.view.allowed if hatched else None,
        chosen_row=focus.token,
        title=f"{name} · {title_of(path.view, head=path.head)}",
        value_name=name,
        phrase=("", N_(" meets ")),
    )
    return Drawing(figure, _until(cells, until))


def _stages(path: AttentionPath, row: int, column: int) -> list[list[str]]:
    """Return the arithmetic of one cell, starting from q and k and ending at each of the four steps."""
    page, view = page_text("attention"), path.view
    cell = path.cell(query=row, key=column)
    products = [
        page["arithmetic"].format(row=view.query.labels[row], column=view.key.labels[column]),
        _dot_product(cell),
    ]
    scores = [*products, *_score(cell)]
    if not cell.is_allowed:
        reason = page[f"reason_{why_masked(view, cell.rule, query=row, key=column)}"].format(window=cell.rule.window)
        why = page["arithmetic_masked"].format(reason=reason) if cell.allowed.any() else page["arithmetic_all_masked"]
        return [products, scores, [*scores, why], [*scores, why]]
    weights = [
        f"s_max = {written(cell.largest)},   Z = Σ_j exp(s_j − s_max) = {written(cell.denominator)}",
        f"α = exp({written(cell.score)} − {factor(cell.largest)}) / Z = {written(cell.power)} / "
        f"{written(cell.denominator)} = {written(cell.weight)}",
        page["arithmetic_check"].format(
            ours=written(cell.weight), recorded=written(cell.recorded), difference=written(cell.difference)
        ),
    ]
    return [products, scores, [*scores, f"s' = s = {written(cell.score)}"], [*scores, *weights]]


def _dot_product(cell: CellArithmetic) -> str:
    last = len(cell.products) - 1
    listed = [*range(min(_PAIRS, last)), last]
    shown = [f"{factor(cell.query[channel])}·{factor(cell.key[channel])}" for channel in listed]
    if last > _PAIRS:
        shown.insert(-1, "…")
    return f"q · k = {' + '.join(shown)} = {written(cell.dot_product)}"


def _score(cell: CellArithmetic) -> list[str]:
    rule, bias = cell.rule, cell.bias
    added = [] if bias is None else [f"b = {written(bias)}"]
    named = _rule_in_words(rule, bias=bias is not None)
    numbers = named.replace("q·k", factor(cell.dot_product)).replace("√d_k", f"√{rule.d_head}")
    if bias is not None:
        numbers = numbers.replace("+ b", f"+ {factor(bias)}")
    return [*added, f"s = {named} = {numbers} = {written(cell.score)}"]
