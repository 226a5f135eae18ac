"""Compare: what changes when one thing changes? Two sentences, two checkpoints, three kinds of model."""

import streamlit as st

from transformer.analysis.answers.comparison import align, difference_map, head_divergence, stream_similarity
from ui.shell.page import page
from ui.shell.selectors import chosen_option
from ui.show.figures import show_snippet, show_source
from views.compare.layers import layers
from views.compare.modes import checkpoints, kinds, sentences

MODES = {"sentences": sentences, "checkpoints": checkpoints, "kinds": kinds, "layers": layers}

with page("compare", needs=("kind", "layer", "head"), strip=False) as p:
    modes = ["sentences", "layers"] if p.reads_pictures else list(MODES)  # other models would read the signs as text
    mode = chosen_option(p.text, "mode", modes, key="compare_mode", label_visibility="collapsed", wrap=True)
    MODES[mode](p)
    if mode == "layers":  # which is about the models, not about a sentence
        p.finish()
    focus = p.focus
    show_snippet(
        "compare",
        f"{p.preamble}\nfrom transformer.analysis.answers.comparison import difference_map, head_differences\n\n"
        f"other = transformer.trace(checkpoint, {st.session_state.get('compare: second', focus.sentence)!r})\n"
        f'place = {{"layer": {focus.layer}, "kind": "{focus.kind}"}}\n'
        f'first, second = (run.attention("{focus.stack}", **place) for run in (trace, other))\n'
        f"difference = difference_map(first, second, head={focus.head})\n"
        "print(difference.mean_change, difference.query.labels)\n"
        f'print(head_differences(trace, other, "{focus.stack}", "{focus.kind}"))\n',
    )
    show_source(align, difference_map, head_divergence, stream_similarity)
