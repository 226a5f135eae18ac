"""The model with a list of edits, as pages ask for it: its effect, and what the model then answers by itself."""

from dataclasses import replace

from transformer.interventions.change_of_answer import Effect, answer_under, effect_of
from transformer.predictions.answer_probabilities import Answer, answer_of
from transformer.runs.edit_specs import edits_from
from ui.compute.loading import load_trace
from ui.compute.store import store
from ui.shell.page import Page


def effect(p: Page, specs: tuple[str, ...]) -> Effect:
    """The page's answer under the edits that ``specs`` name (``transformer.runs.edit_specs``), teacher forced."""
    if not specs:  # nothing runs, so there is nothing to keep
        return effect_of(p.trace, ())
    return store.get(p.run, ("effect", *specs), lambda: effect_of(p.trace, edits_from(p.checkpoint, specs)))


def new_answer(p: Page, specs: tuple[str, ...], *, pads: bool = True) -> Answer:
    """What the model answers by itself under the edits (no ``specs``: as it is), whatever target was given, to the
    sentence with the page's ``pads`` or without."""
    run = replace(p.run, target=None, **({} if pads else {"source_pads": 0}))

    def answer() -> Answer:
        if not specs:  # as a rule this is the page's own trace
            return answer_of(load_trace(run))
        edits = edits_from(run.checkpoint, specs)
        return answer_under(run.checkpoint, run.sentence, edits, pads=run.source_pads, strategy=run.strategy)

    return store.get(run, ("answer", *specs), answer)
