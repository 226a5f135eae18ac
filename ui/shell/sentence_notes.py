"""What the reader is told about a sentence: whether it is unlike the training text, or very long.

A very long text is recorded layer by layer, and only some pages show it.
"""

import re

from charts.toolkit.numbers import language_name, percent, whole
from charts.toolkit.style import three_digits
from transformer.runs.decoding import CONTINUATION
from transformer.runs.inputs import prompt_ids, prompt_of
from transformer.runs.recording_size import allowed_bytes, pass_bytes
from transformer.runs.run import Run
from transformer.runs.traces import Trace
from transformer.runs.tracing import is_long
from transformer.text.tokens import Token
from ui.compute.loading import recipe_of
from ui.shell.navigation import NO_SENTENCE
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


# Function words that are common in one of these languages and do not occur in the others.
_WORDS = {
    "en": "the of and to is was that it for with he she they are this have not you from were which his her what do my",
    "fr": "le les des et est une dans qui que pas vous nous il elle pour avec sur ce cette sont mon ma mes du au",
    "de": "der das und ist nicht ein eine mit ich sie den dem zu auf für sich auch wir ihr wird sind von bei",
    "es": "el los las una y es por con para pero su del como muy está son yo mi ella",
    "it": "il lo gli della che è di non per una con sono mi ma anche del questo ho nella",
}
COMMON = {language: frozenset(words.split()) for language, words in _WORDS.items()}
_LEAST = 2  # number of words needed for a guess


def guess_language(text: str) -> str:
    """Return the code of the language with the most common words in ``text``; "" if too few, or a tie."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    counts = sorted(((sum(map(known.__contains__, words)), code) for code, known in COMMON.items()), reverse=True)
    (most, language), (second, _) = counts[:2]
    return language if most >= _LEAST and most > second else ""


_OF_ONE_LAYER = ("tokens", "attention")  # pages that need at most one layer
_GIGABYTE = 1e9


def needs_every_layer(page: str) -> bool:
    """Return whether a page cannot show a text that is recorded layer by layer."""
    return not shows_one_layer(page) and page not in (*NO_SENTENCE, "training")


def shows_one_layer(page: str) -> bool:
    """Return whether a page needs at most one layer of a sentence at a time."""
    return page in _OF_ONE_LAYER


def reads_long_text(run: Run) -> bool:
    """Return whether the pages record this run layer by layer, with the output that the model generates.

    Raises:
        transformer.InputError: If the model cannot take the text.
    """
    return is_long(run, writes=0 if run.target or run.strategy else CONTINUATION)


def say_long_text(run: Run, text: str, *, kept: int = 0) -> str:
    """Return the text ``by_layer.…`` with the memory of a complete recording and the bytes ``kept``."""
    model, length = run.checkpoint.model, len(prompt_of(run.checkpoint, run.sentence))
    needed, most = pass_bytes(model, target=length), allowed_bytes()
    return common(
        f"by_layer.{text}",
        length=whole(length),
        needed=three_digits(needed / _GIGABYTE),
        most=three_digits(most / _GIGABYTE),
        kept=three_digits(kept / _GIGABYTE),
    )
