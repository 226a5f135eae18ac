"""Checks of the claims in ``opening.toml``."""

from transformer.files.checkpoints import Checkpoint
from transformer.files.opening_file import Example
from transformer.runs.attention_view import AttentionView
from transformer.runs.edits import ablate_head
from transformer.runs.next_sentence import next_sentence
from transformer.runs.traces import Trace
from transformer.runs.tracing import trace


def complaints(checkpoint: Checkpoint, example: Example) -> tuple[str, ...]:
    """Return one sentence for each claim of ``example`` that is not true of this model."""
    made = trace(checkpoint, example.sentence, target=example.target or None)
    found, answer = [], answer_in(made, example.sentence)
    if not answer and not checkpoint.config.encodes_sentences:
        found.append(f"{example.sentence!r} gets no answer")
    if example.answer and answer != example.answer:
        found.append(f"{example.sentence!r} gets the answer {answer!r}, not {example.answer!r}")
    if example.next_sentence and (name := getattr(next_sentence(made), "name", None)) != example.next_sentence:
        found.append(f"{example.sentence!r} has the class {name}, not {example.next_sentence}")
    if not example.place:
        return tuple(found)
    stack, kind, layer, head, token = (example.place.get(name) for name in ("stack", "kind", "layer", "head", "token"))
    if (stack, kind) not in made.attention_kinds():
        return (*found, f"this model has no {stack} {kind}-attention")
    if layer >= made.n_layers(stack) or head >= made.attention(stack, layer, kind).n_heads:
        return (*found, f"this model has no head {head} in {stack} layer {layer}")
    if example.without:
        edit = ablate_head(stack, layer=layer, kind=kind, head=head)
        changed = answer_in(trace(checkpoint, example.sentence, edits=[edit]), example.sentence)
        if changed != example.without:
            found.append(
                f"{example.sentence!r} gets the answer {changed!r} without {stack} {kind} layer {layer} head {head}, "
                f"not {example.without!r}"
            )
    view = made.attention(stack, layer, kind)
    if (token or 0) >= len(view.query):
        found.append(f"token {token} is beyond the {len(view.query)} tokens of {example.sentence!r}")
    for row, wanted in example.looks_at.items():
        if row >= len(view.query):
            found.append(f"row {row} is beyond the {len(view.query)} rows of {example.sentence!r}")
            continue
        at, weight = _peak(view, head, row)
        if view.key.displays[at] != wanted or weight < example.least:
            found.append(
                f"{stack} {kind} layer {layer} head {head}: {view.query.displays[row]!r} (row {row}) looks at "
                f"{view.key.displays[at]!r} with {weight:.2f}, not at {wanted!r} with {example.least:.2f} or more"
            )
    return tuple(found)


def answer_in(made: Trace, sentence: str) -> str:
    """Return the output of the model; for a model that continues a text, what follows ``sentence``."""
    text = made.text
    return (text.removeprefix(sentence) if made.source is None else text).strip()


def _peak(view: AttentionView, head: int, row: int) -> tuple[int, float]:
    weights = view.weights[head, row]
    return int(weights.argmax()), float(weights.max())
