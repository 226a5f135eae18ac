"""One training step on the sentence, with the choices that it needs and words about it."""

from streamlit.delta_generator import DeltaGenerator

from transformer.layers.gradient_step import TrainingStep, training_step
from ui.page.page import Page
from ui.shell import choice
from ui.words.texts import Marked, common, common_md

_RATES = (0.0001, 0.001, 0.01, 0.1)


def take_step(p: Page, controls: DeltaGenerator, *, optimizer: str) -> TrainingStep:
    """Draw learning rate and class in ``controls``, and return the step; the page ends if it is stopped."""
    config, more = p.checkpoint.config, {}
    with controls:
        rate = choice.select_slider(
            common("training_step.rate"), _RATES, default=0.001 if optimizer == "adam" else 0.01,
            key=f"training rate {optimizer}",
            help=common("training_step.rate_help") if optimizer == "sgd" else None, width=260,
        )  # fmt: skip
        if config.n_classes:
            names, owner = config.class_names, (p.checkpoint.fingerprint, p.sentence)
            named = choice.buttons(
                common("training_step.class"), names, p.trace.text, key="training class", owner=owner
            )
            more["label"] = names.index(named)
    if config.fills_blanks:  # without a blank, it predicts the followed token
        more["masked"] = min(p.focus.token, len(_typed(p)) - 1)
    step = p.calc(
        training_step, p.trace, stack=p.focus.stack, rate=rate, optimizer=optimizer, **more,
        name="step", slow=True, wait="wait.step", shows=(".loss_before, step.loss_after", ".blocks"),
    )  # fmt: skip
    if step is None:
        p.finish()
    return step


def loss_in_words(p: Page, step: TrainingStep) -> Marked:
    """Return a text on what the loss measures, how it changes, and that the model itself does not."""
    config = p.checkpoint.config
    asked = "asked_next" if config.has_decoder else "asked_class" if config.n_classes else "asked_blank"
    asked = common_md(f"training_step.{asked}", count=step.n_asked)
    loss = common_md("training_step.loss", asked=asked, before=step.loss_before, after=step.loss_after)
    end = common_md(f"training_step.{'worse' if step.loss_after > step.loss_before else 'copy'}")
    return Marked(f"{loss} {end}")


def moved_in_words(p: Page, step: TrainingStep) -> Marked:
    """Return a text on why these rows of E moved and no others."""
    config, still = p.checkpoint.config, {"still": int((step.moved == 0).sum()), "count": len(step.moved)}
    if config.n_classes:
        said = common_md("training_step.classifier", **still)
    elif step.tied:
        said = common_md("training_step.tied")
    else:
        said = f"{common_md('training_step.untied', **still)} {common_md('training_step.untied_other')}"
    if config.fills_blanks and step.read.ids != tuple(token.id for token in _typed(p)):
        mask = p.checkpoint.tokenizer.display(p.checkpoint.special.mask)
        said += f"\n\n{common_md('training_step.hidden_word', mask=mask)}"
    return Marked(said)


def _typed(p: Page) -> list:
    """Return the tokens without padding."""
    return [token for token in p.trace.tokens(p.focus.stack) if token.role != "pad"]
