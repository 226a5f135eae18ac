"""The logit lens on the page: what is asked for, cached, and the sentences that say what it shows."""

from collections import Counter

from charts.toolkit.style import three_digits
from charts.toolkit.words import _, in_words
from transformer.layers.residual_stream import in_a_sentence
from transformer.predictions.jacobian_lens import JacobianLens
from transformer.predictions.lens import Lens, logit_lens
from transformer.runs.inputs import prompt_ids
from transformer.runs.traces import Trace
from transformer.variants.output_heads import FirstTokenClassifier, TokenHead
from ui.compute.store import store
from ui.shell import choice, page_state
from ui.shell.choice import chosen_option
from ui.shell.page import Page
from ui.shell.strip import FIRST_CHOSEN
from ui.words.texts import as_plain, in_code

GRID = "logit-lens"
MAX_COLUMNS = 40  # of the grid, at a time


def choose(p: Page, name: str, options: list[str], **more: object) -> str:
    """A row of buttons whose choice is in the address."""
    return chosen_option(p.text, name, options, key=f"lens_{name}", **more)


def chosen_lens(p: Page, fit: JacobianLens | None) -> tuple[Lens, str]:
    """The lens with the rows and the word to follow that were chosen, and the colouring. A Jacobian lens is fitted to
    whole layers."""
    sublayers = fit is None and choose(p, "rows", ["layers", "sublayers"]) == "sublayers"
    colour = choose(p, "colour", ["probability", "rank", "divergence"], help=p.text["colour_help"])
    return chosen_follow(p, sublayers=sublayers, fit=fit), colour


def chosen_follow(p: Page, *, sublayers: bool, fit: JacobianLens | None = None) -> Lens:
    """The lens that follows the model's own words, or those that came where the reader wants that."""
    lens = lens_of(p, sublayers=sublayers, fit=fit)
    came = came_instead(p.trace, lens)
    if came and choose(p, "follow", ["own", "came"], help=p.text["follow_help"]) == "came":
        return lens_of(p, sublayers=sublayers, follow=came, fit=fit)
    return lens


def came_instead(trace: Trace, lens: Lens) -> tuple[int, ...]:
    """The ids that really came, where they are not what the model would have said; else nothing."""
    if lens.stack != "decoder" or trace.prediction is None or any(token.role == "pad" for token in trace.prediction):
        return ()
    own = tuple(int(id) for id in lens.ids[-1, :, 0])
    return trace.prediction.ids if trace.prediction.ids != own else ()


def lens_of(p: Page, *, sublayers: bool, follow: tuple[int, ...] = (), fit: JacobianLens | None = None) -> Lens:
    transport = None if fit is None else fit.transport
    return store.get(
        p.run,
        ("lens", sublayers, follow, fit is not None),
        lambda: logit_lens(p.trace, sublayers=sublayers, follow=follow or None, transport=transport),
        wait="wait.lens",
    )


def place_of(p: Page) -> tuple[str, int]:
    """The stack that the lens reads, and the token whose course is drawn: the focused one where the lens has it.

    Else where there is most to see: the first blank, the first word of the answer, or the first one decided last.
    """
    config = p.checkpoint.config
    stack = "decoder" if "decoder" in p.trace.stacks else "encoder"
    if len(p.trace.stacks) == 1 and p.focus.token == 0 and not config.n_classes and not _first_chosen(p):
        if stack == "decoder":
            return stack, len(prompt_ids(p.checkpoint, p.focus.sentence)) - 1
        return stack, next((token.index for token in p.trace.source if token.role == "mask"), 0)
    if p.focus.stack == stack:
        return stack, p.focus.token
    return stack, int(lens_of(p, sublayers=False).decided.argmax())


def _first_chosen(p: Page) -> bool:
    """Whether somebody has clicked the first token."""
    page_state.belongs_to(FIRST_CHOSEN, (p.focus.checkpoint, p.focus.sentence))
    return choice.is_on(FIRST_CHOSEN)


def position_of(p: Page, lens: Lens) -> int:
    """The column of that place."""
    _, token = place_of(p)
    # A classifier's whole sentence comes first; it is shown where the sentence's <s> is chosen.
    return token if not lens.of_classes else token + 1 if token else 0


def decided_text(p: Page, lens: Lens) -> str:
    """How many words are decided at which step."""
    count = Counter(int(step) for step in lens.decided)
    parts = []
    for step in sorted(count, key=lambda step: (step < 0, step)):
        key = "never" if step < 0 else "embedding" if step == 0 else "step"
        name = as_plain(in_words(in_a_sentence(lens.steps[step])))
        parts.append(p.text[f"decided_{key}"].format(count=count[step], total=len(lens.read), step=name))
    return p.text["decided"].format(counts=", ".join(parts))


def place_text(p: Page, lens: Lens, position: int, runner_up: str) -> str:
    """What the model says at one place, how surely and since when."""
    whole = lens.of_classes and position == 0
    step = int(lens.decided[position])
    if lens.of_classes:
        key = "place_whole" if whole else "place_alone"
    else:
        key = "place_never" if step < 0 else "place" if lens.stack == "decoder" else "place_masked"
    word, probability = lens.followed_words[position], lens.probability[-1, position]
    if key == "place_alone":
        word, probability = lens.words[-1][position], lens.probabilities[-1, position, 0]
    return p.text[key].format(
        read=as_plain(lens.read[position]),
        position=position - lens.of_classes,
        word=as_plain(word),
        probability=three_digits(float(probability)),
        step=as_plain(in_words(in_a_sentence(lens.steps[step])) if step else _("the embedding")),
        runner_up=as_plain(runner_up),
    )


def window(p: Page, lens: Lens, position: int) -> tuple[Lens, int | None, str]:
    """The columns that are drawn, where ``position`` is among them, and a sentence that says which they are: a long
    text is looked at piece by piece."""
    count = len(lens.read)
    if count <= MAX_COLUMNS:
        return lens, position, ""
    last = count - MAX_COLUMNS
    begin = min(max(0, position - MAX_COLUMNS // 2), last)
    first = int(choice.slider(p.text["window"], 0, last, begin, key="lens_first", owner=(lens.read, position)))
    said = p.text["window_caption"].format(first=first, last=first + MAX_COLUMNS - 1, count=count)
    inside = first <= position < first + MAX_COLUMNS
    return lens.part(first, first + MAX_COLUMNS), position - first if inside else None, f"{said} "


def notes(p: Page, lens: Lens) -> str:
    """A remark about this kind of model."""
    model, stack = p.checkpoint.model, p.checkpoint.model.get_submodule(lens.stack)
    said = [p.text["pre" if lens.final_norm else "post"].format(norm=type(stack.final_norm).__name__)]
    if not lens.final_norm:
        said.append(p.text["post_normed" if f"{lens.stack}.embedding.norm.output" in p.trace else "post_bare"])
    if lens.of_classes:
        first = isinstance(model.classifier, FirstTokenClassifier)
        said.append(p.text["classes_first" if first else "classes"])
    projection = getattr(stack, "vocabulary_projection", None)
    if isinstance(projection, TokenHead):
        said.append(p.text["token_head"])
    if (cap := getattr(projection, "cap", None)) is not None:
        said.append(p.text["cap"].format(cap=three_digits(cap)))
    if lens.stack == "decoder" and (never := p.checkpoint.framing.never):
        names = ", ".join(f"`{in_code(p.checkpoint.tokenizer.display(id))}`" for id in never)
        said.append(p.text["every_word"].format(names=names))
    if len(p.trace.stacks) > 1:
        said.append(p.text["encoder"])
    kind = "" if lens.transport is None else "jacobian_"
    return " ".join((*said, p.text[f"{kind}caution"], p.text[f"{kind}source"]))


def formula_of(p: Page, lens: Lens) -> str:
    """How a row is read out: through the final norm, where there is one, and what stands in front of the words. In
    front of all, a Jacobian lens has its matrix."""
    formula = _formula(p, lens)
    return formula if lens.transport is None else formula.replace("x_k", "J_k x_k")


def _formula(p: Page, lens: Lens) -> str:
    stack = p.checkpoint.model.get_submodule(lens.stack)
    norm = type(stack.final_norm).__name__
    head = getattr(p.checkpoint.model, "classifier", None) or getattr(stack, "vocabulary_projection", None)
    if isinstance(head, (TokenHead, FirstTokenClassifier)):
        stream = rf"\text{{{norm}}}_{{\text{{final}}}}(x_k)" if lens.final_norm else "x_k"
        return p.text["formula_head"].replace("%X%", stream)
    return p.text["formula_pre" if lens.final_norm else "formula_post"].replace("%NORM%", norm)
