"""The code that computes what the Compare page shows."""

from collections.abc import Sequence

from transformer.predictions.comparison import (
    align,
    alike_heads,
    compared_attention,
    difference_map,
    head_divergence,
    stream_similarity,
)
from ui.shell.page import Page
from ui.show.figures import show_snippet, show_source


def code_of_sentences(p: Page, second: str) -> None:
    """Of two sentences on one checkpoint."""
    focus = p.focus
    show_snippet(
        "compare",
        f"{p.preamble}\nfrom transformer.predictions.comparison import (\n"
        "    compared_attention, difference_map, head_differences\n)\n\n"
        f"other = transformer.trace(checkpoint, {second!r})\n"
        f'place = ("{focus.stack}", {focus.layer}, "{focus.kind}")\n'
        f"first, second = (compared_attention(run, *place) for run in (trace, other))\n"
        f"difference = difference_map(first, second, head={focus.head})\n"
        "print(difference.mean_change, difference.query.labels)\n"
        f'print(head_differences(trace, other, "{focus.stack}", "{focus.kind}"))\n',
    )
    show_source(align, compared_attention, difference_map, head_divergence, stream_similarity)


def code_of_checkpoints(p: Page, others: Sequence[str]) -> None:
    """Of one sentence on several checkpoints, this page's first."""
    show_snippet(
        "compare",
        f"{p.preamble}\nothers = {[p.place_of(name) for name in others]}\n"
        f"runs = [trace, *(transformer.trace(transformer.load(place), {p.focus.sentence!r}) for place in others)]\n"
        "for run in runs:\n"
        "    for stack, kind in run.attention_kinds():\n"
        "        for layer in range(run.n_layers(stack)):\n"
        "            print(run.checkpoint.name, stack, kind, layer, run.attention(stack, layer, kind).weights.shape)\n",
    )
    show_source(align, alike_heads)
