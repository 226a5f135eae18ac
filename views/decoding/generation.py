"""A text being written: how the next token is chosen, the walk through the steps, and what belongs to one step."""

from dataclasses import asdict, dataclass, replace

import pandas as pd
import streamlit as st

from charts.toolkit.numbers import whole
from charts.toolkit.style import three_digits
from transformer import Decoding, Greedy, Sample, decode
from transformer.predictions.decoding_steps import (
    StepAttention,
    confidence,
    rank,
    reshape_step,
    step_attention,
    without_most_activations,
)
from transformer.runs.decoding_strategies import Strategy, length_penalty
from transformer.runs.inputs import prompt_of
from ui.compute.store import store
from ui.shell import choice
from ui.shell.choice import chosen_option
from ui.shell.page import Page
from ui.shell.presentation.presenter import labels
from ui.show.figures import show_figure, show_formula, show_snippet
from ui.words.model_terms import logits_formula
from ui.words.texts import as_plain, slider_format
from views.decoding import candidate_figures
from views.decoding.attention_choice import choose, choose_heads, of_heads, settle

SHOWN = 10
_END_OF_PREFIX = 60  # characters of the text so far that the sentence about a step repeats


@dataclass(frozen=True)
class Settings:
    """``kind``: "greedy" or "sampling"; the rest reshapes the logits, which does not change greedy choice."""

    kind: str
    seed: int
    temperature: float
    top_k: int
    top_p: float

    @property
    def strategy(self) -> Strategy:
        return Greedy() if self.kind == "greedy" else Sample(**self.reshaping, seed=self.seed)

    @property
    def reshaping(self) -> dict[str, float]:
        return {"temperature": self.temperature, "top_k": self.top_k, "top_p": self.top_p}


def given(p: Page) -> str:
    """The target text of the sidebar, which every answer must begin with; often empty."""
    return p.focus.target if p.focus.target.strip() else ""


def end_of(p: Page) -> str:
    """The token that ends a text, as it is shown."""
    return "".join(map(p.checkpoint.tokenizer.display, p.checkpoint.framing.end)) or "–"


def show_score(p: Page, log_probability: float, count: int, exponent: float) -> None:
    """The formula by which beam search ranks a text, with the numbers of one of ``count`` tokens."""
    penalty = length_penalty(count, exponent)
    show_formula(
        p.text["score_formula"],
        caption=p.text["score_caption"].format(
            sum=three_digits(log_probability),
            count=count,
            end=as_plain(end_of(p)),
            exponent=three_digits(exponent),
            penalty=three_digits(penalty),
            score=three_digits(log_probability / penalty),
        ),
    )


def written(p: Page, strategy: Strategy, *, forced: str | tuple[int, ...] | None = None) -> Decoding:
    """What the strategy writes for the focused sentence, beginning with ``forced`` (``None``: the sidebar's target)."""
    forced = given(p) if forced is None else forced
    run = replace(p.run, target=None, strategy=strategy)

    def write() -> Decoding:
        arguments = {"forced": forced, "source_pads": run.source_pads, "record_steps": True}
        return without_most_activations(decode(run.checkpoint, run.sentence, strategy, **arguments))

    return store.get(run, ("decoding", forced), write, wait="wait.write")


def choose_strategy(p: Page) -> tuple[str, int]:
    """("greedy" or "sampling", seed), kept in the address."""
    with st.container(horizontal=True, vertical_alignment="bottom", width="content"):
        kind = chosen_option(
            p.text,
            "strategy",
            ["greedy", "sampling"],
            words=lambda text, kind: text[f"strategy_{kind}"].lower(),
            key="strategy",
            help=p.text["strategy_help"],
            wrap=True,
            label_visibility=labels(),
        )
        seed = 0
        if kind == "sampling":
            seed = choice.number(p.text["seed"], 0, 999_999, 0, key="seed", width=150)
    return kind, int(seed)


NO_RESHAPING = {"temperature": 1.0, "top_k": 0, "top_p": 1.0}


def choose_reshaping(p: Page) -> dict[str, float]:
    """Temperature, top-k and top-p, one below the other, kept in the address."""
    temperature = choice.slider(
        p.text["temperature"], 0.1, 3.0, 1.0, 0.1, slider_format(), key="temperature", help=p.text["temperature_help"]
    )
    top_k = choice.slider(p.text["top_k"], 0, 50, 0, 1, key="top_k", help=p.text["top_k_help"])
    top_p = choice.slider(
        p.text["top_p"], 0.05, 1.0, 1.0, 0.05, slider_format(), key="top_p", help=p.text["top_p_help"]
    )
    return {"temperature": float(temperature), "top_k": int(top_k), "top_p": float(top_p)}


def what_came(
    p: Page, decoding: Decoding, settings: Settings, step: int, *, n_given: int, n_kept: int | None = None
) -> tuple[str, dict[str, str]]:
    """The sentence about a step: which template, with stress in ``**``, and what fills it, as plain text.

    In a branch, ``n_kept`` of the given tokens are what it has in common with the text that it left.
    """
    chosen = decoding.steps[step].chosen
    before = [*prompt_of(p.checkpoint, p.focus.sentence), *decoding.tokens.ids[:step]]
    text = p.checkpoint.tokenizer.decode(before)
    shortened = f"… {text[-_END_OF_PREFIX:]}" if len(text) > _END_OF_PREFIX else text
    key = "comes_given" if step < n_given else f"comes_{settings.kind}"
    if n_kept is not None and step < n_given:
        key = "comes_kept" if step < n_kept else "comes_forced"
    if key == "comes_greedy" and chosen.id in p.checkpoint.framing.ends:
        key = "comes_greedy_end"
    return p.text[key], {
        "place": p.text["after"].format(text=shortened) if text else p.text["at_beginning"],
        "token": chosen.display,
        "probability": three_digits(chosen.probability),
        "chance": three_digits(chosen.chance),
        "rank": whole(rank(decoding.steps[step])),
    }


def describe(p: Page, decoding: Decoding, settings: Settings, step: int, *, n_given: int) -> None:
    """In one sentence: what came at this step, and how it was chosen."""
    template, values = what_came(p, decoding, settings, step, n_given=n_given)
    st.markdown(template.format(**{name: as_plain(value) for name, value in values.items()}))


def candidates(p: Page, decoding: Decoding, step: int) -> None:
    """What could have come at this step, by the model's own probability."""
    own = reshape_step(decoding.steps[step], shown=SHOWN)
    show_figure(
        candidate_figures.candidate_bars(
            pd.DataFrame([asdict(row) for row in own.rows]).drop(columns="kept"),
            rest=own.rest,
            axis=p.text["candidates_axis"],
        ),
        name="candidates",
        caption=p.text["candidates_caption"],
        alt=p.text["candidates_alt"],
    )


def choose_attention(p: Page) -> tuple[str, int, int | None]:
    """(kind, layer, head) of the attention to show; ``None``: the mean of all heads."""
    config = p.checkpoint.config
    kinds = ["cross", "self"] if config.has_encoder else ["self"]
    kind = kinds[0]
    with st.container(horizontal=True):
        if len(kinds) > 1:
            kind = choose(p, "attention_kind", kinds, "attention")
        head = choose_heads(p)
    settle("layer", *(["head"] if head is not None else []))
    return kind, min(p.focus.layer, config.n_decoder_layers - 1), head


def attention(p: Page, decoding: Decoding, step: int) -> None:
    """Where the model looked while it chose: the source, or the text so far."""
    figure = st.container()
    kind, layer, head = choose_attention(p)
    found = step_attention(p.checkpoint, decoding, p.focus.sentence, step=step, layer=layer, kind=kind)
    with figure:
        caption = p.text[f"attention_{kind}_caption"].format(step=step + 1, layer=layer)
        show_attention(p, found, layer=layer, head=head, name="attention-of-the-step", caption=caption)


def show_attention(p: Page, found: StepAttention, *, layer: int, head: int | None, name: str, caption: str) -> None:
    """One row of attention as bars; ``head`` ``None``: the mean of all."""
    show_figure(
        candidate_figures.step_attention(
            found.of(head), tokens=found.key, allowed=found.allowed, of=of_heads(p, layer=layer, head=head)
        ),
        name=name,
        caption=caption,
        alt=p.text["attention_alt"],
    )


def reshaping(p: Page, decoding: Decoding, settings: Settings, step: int) -> None:
    """The same candidates from logits to the chances of a draw, with the formula in these shapes."""
    shaped = reshape_step(decoding.steps[step], **settings.reshaping, shown=SHOWN)
    rules = [p.text["rule_k"].format(k=settings.top_k)] if settings.top_k else []
    rules += [p.text["rule_p"].format(p=three_digits(settings.top_p))] if settings.top_p < 1 else []
    show_figure(
        candidate_figures.reshaping(
            pd.DataFrame([asdict(row) for row in shaped.rows]),
            temperature=settings.temperature,
            rule=", ".join(rules) or p.text["rule_none"],
        ),
        name="from-logits-to-a-choice",
        caption=p.text["reshape_caption"].format(
            step=step + 1, kept=whole(shaped.n_kept), possible=whole(shaped.n_possible)
        )
        + (p.text["reshape_cut"] if shaped.n_kept < shaped.n_possible else "")
        + (p.text["reshape_greedy"] if settings.kind == "greedy" else ""),
        alt=p.text["reshape_alt"],
    )
    config = p.checkpoint.config
    matrix = "E^\\top" if config.tie_embeddings else "W"
    show_formula(
        p.text["formula"].format(logits=logits_formula(p.checkpoint.model.decoder.vocabulary_projection, "h", matrix)),
        caption=p.text["formula_caption"].format(
            width=config.d_model,
            matrix="Eᵀ" if config.tie_embeddings else "W",
            vocabulary=whole(config.vocabulary_size),
            possible=whole(shaped.n_possible),
            temperature=three_digits(settings.temperature),
            kept=whole(shaped.n_kept),
        ),
    )


def sureness(p: Page, decoding: Decoding, step: int) -> None:
    """The probability of every token of the answer when it was written."""
    sure = confidence(decoding)
    show_figure(
        candidate_figures.answer_confidence(
            sure.probability, tokens=decoding.tokens, runner_up=sure.runner_up, current=step
        ),
        name="confidence",
        caption=p.text["confidence_step"].format(step=step + 1)
        + p.text["confidence_caption"].format(
            sum=three_digits(sure.log_probability),
            whole=three_digits(float(sure.probability.prod())),
            typical=three_digits(sure.typical),
        ),
        alt=p.text["confidence_alt"],
    )


def arguments_of(p: Page, strategy: Strategy, *, forced: tuple[int, ...] = ()) -> str:
    """The arguments of ``transformer.decode`` after the checkpoint, for a snippet."""
    arguments = [repr(p.focus.sentence), f"transformer.{strategy!r}"]
    arguments += [f"forced={forced or given(p)!r}"] if forced or given(p) else []
    arguments += [f"source_pads={p.run.source_pads}"] if p.run.source_pads else []
    return ", ".join(arguments)


def snippet(p: Page, decoding: Decoding, settings: Settings, step: int, *, forced: tuple[int, ...] = ()) -> None:
    """The step again, outside of the app."""
    chosen = decoding.steps[step].chosen
    show_snippet(
        "generation",
        f"import transformer\n\n{p.load_line}"
        f"decoding = transformer.decode(checkpoint, {arguments_of(p, settings.strategy, forced=forced)})\n"
        f"print(repr(decoding.text))\n"
        f"step = decoding.steps[{step}]\n"
        f"print(step.chosen.display, step.chosen.probability)  # {chosen.display} {chosen.probability:.7g}\n"
        f"print(step.candidates[:3], step.logits.shape)\n",
    )
