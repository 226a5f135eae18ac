"""A line about a sentence that is longer than, or unlike, the model's training text."""

from charts.toolkit.numbers import language_name, percent, whole
from transformer.runs.inputs import prompt_ids
from transformer.runs.traces import Trace
from transformer.text.tokens import Token
from ui.compute.loading import recipe_of
from ui.words.language_guess import guess_language
from ui.words.texts import common

READ = "en"  # the language that the models of all recipes read
_MANY_BYTES = 0.2  # smallest share of unusual tokens for which a sentence counts as unlike the training text


def unlike_training(trace: Trace, name: str) -> str:
    """Return a line about what is unusual in the sentence for the checkpoint ``name``; "" if nothing is."""
    if trace.checkpoint.config.reads_images:
        return ""
    tokens = [token for token in _typed_tokens(trace) if token.role in ("", "other")]
    reasons = []
    recipe = recipe_of(name)
    if recipe is not None and len(tokens) > recipe.max_sequence_length:
        most = whole(recipe.max_sequence_length)
        reasons.append(common("familiarity.long", count=whole(len(tokens)), most=most))
    unknown = sum(token.role == "other" for token in tokens)
    lone = unknown + sum(token.display.startswith("⟨") for token in tokens if not token.role)
    if tokens and lone / len(tokens) >= _MANY_BYTES:
        which = "familiarity.unknown" if unknown else "familiarity.bytes"
        reasons.append(common(which, share=percent(lone / len(tokens))))
    guess = guess_language(trace.sentence)
    if recipe is not None and guess not in ("", READ):
        reasons.append(common("familiarity.language", language=language_name(guess), own=language_name(READ)))
    return common("familiarity.line", reasons="; ".join(reasons)) if reasons else ""


def _typed_tokens(trace: Trace) -> tuple[Token, ...]:
    """Return the tokens of the sentence, without those that a decoder-only model generated after it."""
    if trace.source is not None:
        return trace.source.tokens
    return trace.target.tokens[: len(prompt_ids(trace.checkpoint, trace.sentence))]
