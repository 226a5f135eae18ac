"""The other parts of a layer: all heads, Add & Norm, feed-forward."""

import numpy as np

from charts.canvas.attention_maps import attention_grid
from charts.documents.document_parts import Drawing, Paragraph, Section, Views
from charts.toolkit.numbers import percent, whole
from transformer.layers.feed_forward_units import most_active_units, silent_share
from transformer.layers.norms import norm_names, norm_steps
from transformer.layers.residual_stream import sublayers
from transformer.runs.traces import Trace
from ui.shell.focus import Focus
from ui.words.texts import as_plain, page_text
from views.overview.handout.writing import WIDTH, factor, handout_text, named, section, vectors, written

_ACROSS = 4  # small maps side by side; more would not fit on a phone


def heads(trace: Trace, focus: Focus) -> Section:
    """Return every head of one layer, for each kind of attention that the model has."""
    text, parts = handout_text(), []
    for stack, kind in trace.attention_kinds():
        layer = min(focus.layer, trace.n_layers(stack) - 1)
        view = trace.attention(stack, layer, kind)
        own = (layer, focus.head) if (stack, kind) == (focus.stack, focus.kind) else None
        parts.append(Drawing(attention_grid([view], selected=own, per_line=min(_ACROSS, view.n_heads))))
    return section("heads", trace, [Paragraph(text["heads"]), *parts], look_for=(1,))


def add_norm(trace: Trace, focus: Focus) -> Section:
    """Return the first addition of the layer, and its first norm number by number."""
    page, text, stack = page_text("add_norm"), handout_text(), focus.stack
    labels, config = trace.tokens(stack).labels, trace.checkpoint.config
    block = getattr(config, "block", "sequential")
    said = [page[config.norm], *([page[block]] if block in page else [])]
    names = norm_names(trace, stack, focus.layer)
    parts = [*map(Paragraph, said), *_addition(trace, focus, labels)]
    if not names:
        return section("add_norm", trace, parts)
    name = names[0]
    steps = [norm_steps(trace, name, position) for position in range(len(labels))]
    rms = steps[0].bias is None

    def lines(row: int, column: int) -> list[str]:
        step = steps[row]
        x, gain, y = factor(step.x[column]), written(step.gain[column]), written(step.output[column])
        if rms:
            root = f"RMS = √(Σ x² / {len(step.x)}) = {written(step.std)},   √(RMS² + ε) = {written(step.denominator)}"
            return [root, f"y = γ · x / √(RMS² + ε) = {gain} · {x} / {written(step.denominator)} = {y}"]
        return [
            f"μ = Σ x / {len(step.x)} = {written(step.mean)},   σ = {written(step.std)},   "
            f"√(σ² + ε) = {written(step.denominator)}",
            f"y = γ · (x − μ) / √(σ² + ε) + β = {gain} · ({x} − {factor(step.mean)}) / {written(step.denominator)} + "
            f"{factor(step.bias[column])} = {y}",
        ]

    arrays = (("x", "x"), ("after_normalized", "normalized"), ("after_output", "output"))
    views = tuple(
        (label, (vectors(np.stack([getattr(step, part) for step in steps]), labels, title=label, lines=lines),))
        for key, part in arrays
        for label in (page[key] if key in page else text["norm_input"],)
    )
    formula = "RMSNorm(x) = γ · x / √(mean(x²) + ε)" if rms else "LayerNorm(x) = γ · (x − μ) / √(σ² + ε) + β"
    parts += [Paragraph(text["norm_of"].format(name=name)), Paragraph(formula, kind="formula")]
    return section("add_norm", trace, [*parts, Views("norm", text["shown"], views)], look_for=(0, 1))


def _addition(trace: Trace, focus: Focus, labels: tuple[str, ...]) -> list:
    """Return in + update = out of the layer's first sub-layer."""
    text = handout_text()
    sublayer = next(each for each in sublayers(trace, focus.stack) if each.layer == focus.layer)
    before, update = trace.values(sublayer.before), trace.values(sublayer.update)

    def lines(row: int, column: int) -> list[str]:
        x, added = before[row, column], update[row, column]
        return [named(text["added"], f"{written(x)} + {factor(added)} = {written(x + added)}")]

    total = before + update
    return [
        Paragraph(text["addition"].format(before=sublayer.before, update=sublayer.update)),
        vectors(total, labels, title=text["addition_title"], lines=lines),
    ]


def feed_forward(trace: Trace, focus: Focus) -> Section:
    """Return the units with the largest values in the sentence, before and after the activation function."""
    page, text, stack = page_text("feed_forward"), handout_text(), focus.stack
    name, config = f"{stack}.layers.{focus.layer}.feed_forward", trace.checkpoint.config
    token, labels = trace.tokens(stack)[focus.token], trace.tokens(stack).labels
    before, hidden = trace.values(f"{name}.pre_activation"), trace.values(f"{name}.hidden")
    units, count = most_active_units(trace, stack, focus.layer, count=WIDTH), hidden.shape[-1]
    gate = trace.values(f"{name}.gate") if f"{name}.gate" in trace else None
    share = float(silent_share(trace, stack)[focus.layer, focus.token])
    silent, activation = round(share * count), config.activation

    def lines(row: int, column: int) -> list[str]:
        unit = units[column]
        inside, outside = written(before[row, unit]), written(hidden[row, unit])
        if gate is None:
            return [text["unit"].format(unit=unit), f"{activation}({inside}) = {outside}"]
        opened = gate[row, unit]
        other = text["gated"].format(hidden=outside, gate=written(opened))
        return [text["unit"].format(unit=unit), f"{activation}({inside}) = {written(opened)}", other]

    said = page["token_line" if activation != "tanh" else "token_line_tanh"].format(
        token=as_plain(token.display),
        active=whole(count - silent),
        units=whole(count),
        inactive=whole(silent),
        share=percent(share, decimals=1),
    )
    views = tuple(
        (label, (vectors(values[:, units], labels, title=label, lines=lines, column=page["unit"], columns=units),))
        for label, values in ((page["heatmap_pre"], before), (page["heatmap_hidden"], hidden))
    )
    caption = page["heatmap_caption"].format(shown=len(units), units=whole(count))
    parts = [Paragraph(said), Views("units", text["shown"], views), Paragraph(caption, kind="hint")]
    return section("feed_forward", trace, parts, look_for=(0,))
