"""Texts of the time-lapse: names of steps, outputs with common words, when heads acquired their roles."""

import math
from collections.abc import Sequence
from itertools import groupby

from charts.toolkit.head_names import head_in_full
from charts.toolkit.numbers import percent, whole
from charts.toolkit.style import percent_digits
from transformer.files.model_card import began_as
from transformer.files.untrained import SEED
from transformer.heads.roles_through_training import Moment, shared_words
from transformer.runs.head_places import Head
from transformer.text.tokens import TokenSequence
from ui.lab.role_names import role_text
from ui.words.texts import PageText, as_plain, page_text, token_name
from views.training.training_view_model import TrainingViewModel, mean_probability

_LONGEST, _LINE = 100, 50  # characters of an output beside another one, and of one line of it
_NOISE = 30  # characters of what a model with random weights writes
_RARE = 0.001  # a probability that is written as "1 in 9,300"
_LONGEST_RUN = 5  # an untrained model repeats one word; a longer run becomes "word ×25"


def step_name(moment: Moment, text: PageText) -> str:
    """Return "1,500", "random", or "final" if the checkpoint does not record its step."""
    if moment.has_random_weights:
        return text["time_random"]
    return text["time_final"] if moment.step is None else whole(moment.step, language=text.language)


def step_names(moments: Sequence[Moment], text: PageText, *, card: str) -> list[str]:
    """Return the names on the slider; the first names the start of training, the last the final step."""
    names = [
        text["time_random_weights"] if moment.has_random_weights else step_name(moment, text) for moment in moments
    ]
    start = next((index for index, moment in enumerate(moments) if moment.step == 0), None)
    if start is not None:
        before = began_as(card)
        names[start] = text["time_untrained"] if before is None else text["time_before"].format(name=before)
    if moments[-1].step is not None:
        names[-1] = text["time_last"].format(step=whole(moments[-1].step, language=text.language))
    return names


def when(moment: Moment, text: PageText, *, shown: TrainingViewModel, card: str) -> str:
    """Return when ``moment`` was: "Before training", "After 4,200 steps".

    A run that continued from another checkpoint is not counted from random weights.
    """
    if moment.has_random_weights or moment.step == 0:
        return text["early_before"]
    if shown.early.has_random_weights and began_as(card) is not None:
        return text["early_trained"]
    if moment.step is None:
        return text["early_end"]
    return text["early_after"].format(step=step_name(moment, text))


def titles(shown: TrainingViewModel, text: PageText, *, card: str) -> tuple[str, str]:
    """Return ``when`` for the first and last moment, as titles of their outputs."""
    first, last = (when(moment, text, shown=shown, card=card) for moment in (shown.early, shown.late))
    return (text["early_random"] if shown.early.has_random_weights else first), last


def note(shown: TrainingViewModel, text: PageText, *, card: str) -> str:
    """Say where random weights come from and whether the run began with them; "" if none are shown."""
    if not shown.early.has_random_weights:
        return ""
    origin = began_as(card)
    key = "early_seed" if origin is None else "early_seed_continued"
    return text[key].format(seed=SEED, origin=origin and as_plain(origin))


def shortened(answer: str, other: str) -> str:
    """Return the beginning of an output that is longer than ``other``: an untrained model may never end."""
    longest = min(_LONGEST, max(_LINE, len(other)))
    return answer if len(answer) <= longest else answer[:longest].rsplit(" ", 1)[0] + " …"


def beginning(text: str) -> str:
    """Return what fits on one line of a text that a model with random weights would never end."""
    cut = text[:_NOISE]
    return f"{cut.rsplit(' ', 1)[0] if ' ' in cut and len(text) > _NOISE else cut} …"


def marked(answer: str, other: str) -> str:
    """Return ``answer`` as Markdown, words shared with ``other`` in green, long repetitions counted."""
    written = ""
    for word, run in groupby(shared_words(answer, other), key=lambda piece: piece[0].lstrip()):
        pieces = list(run)
        shown = f":green[{as_plain(word)}]" if any(shared for _, shared in pieces) else as_plain(word)
        spaces = [" " if piece != word else "" for piece, _ in pieces]
        if len(pieces) > _LONGEST_RUN:
            written += f"{spaces[0]}{shown} :small[×{len(pieces)}]"
        else:
            written += "".join(space + shown for space in spaces)
    return written.strip() or "–"


def likely(moment: Moment, other: Moment, text: PageText) -> str:
    """Return the final output's probability at ``moment``, and what green words are, if there are any."""
    said = text["time_likely"].format(probability=probability(moment))
    shares = any(shared for _, shared in shared_words(shortened(moment.text, other.text), other.text))
    return f"{said} {text['time_green']}" if shares else said


def probability(moment: Moment) -> str:
    """Return the probability per token of the finished model's output: "71.2%", "1 in 9,300"."""
    return per_token(mean_probability(moment))


def per_token(value: float) -> str:
    """Return a probability in percent, or as "1 in 9,300" below 0.1%: 0.0108% reads like 0.0108."""
    if math.isnan(value):
        return "–"
    if not 0 < value < _RARE:
        return percent_digits(value)
    count = round(1 / value)
    text = page_text("training")
    return text["early_one_in"].format(count=whole(round(count, 2 - len(str(count))), language=text.language))


def head_name(location: Head, text: PageText) -> str:
    """Return "Layer 1, head 3 of cross-attention"."""
    kind = page_text("heads")[f"kind_{location.stack}_{location.kind}"]
    return text["time_head"].format(layer=location.layer, head=location.head, kind=kind)


def change(shown: TrainingViewModel, text: PageText, *, predicted: TokenSequence | None = None) -> str:
    """Say how much of its attention the head gives to one token at the first moment and at the last.

    ``predicted``: the tokens that name the rows of cross-attention.
    """
    head, gain = head_in_full(shown.location), shown.gain(predicted)
    if gain is None:
        place, share = shown.most_changed
        return text["early_share"].format(head=head_in_full(place), change=percent_digits(share))
    row = "early_predicting" if shown.location.kind == "cross" else "early_reading"
    said = text[row].format(
        query=token_name(gain.query), key=token_name(gain.key), before=percent(gain.before), after=percent(gain.after)
    )
    role = shown.roles[-1]
    if not role.is_active:
        return text["early_head"].format(said=said, head=head)
    heads = page_text("heads").instead(*(["of_pictures"] if shown.views[-1].key.patches else []))
    return text["early_role"].format(said=said, head=head, does=heads["role_does_one"][role.role])


def story(shown: TrainingViewModel, text: PageText) -> str:
    """Say when one head acquired its role, and when its map changed most, in two sentences."""
    heads, named = page_text("heads"), head_name(shown.location, text)
    turn = shown.greatest_turn
    changed = text["time_turn"].format(change=percent_digits(turn.amount), **_between(shown, turn.later, text))
    if shown.settled is None:
        return f"{text['time_story_none'].format(head=named)} {changed}"
    role = role_text(shown.roles[-1], heads)
    if shown.settled == 0:
        return f"{text['time_story_always'].format(head=named, role=role)} {changed}"
    since = step_name(shown.moments[shown.settled], text)
    return f"{text['time_story'].format(head=named, role=role, step=since)} {changed}"


def _between(shown: TrainingViewModel, later: int, text: PageText) -> dict[str, str]:
    return {"before": step_name(shown.moments[later - 1], text), "after": step_name(shown.moments[later], text)}


def summary(shown: TrainingViewModel, text: PageText) -> str:
    """Say how many heads have a role at the start and the end, and when most acquired it."""
    total, (first, last) = len(shown.late.roles), (moment.clear_roles for moment in (shown.early, shown.late))
    counts = text["time_summary"].format(total=total, first=first, last=last, step=step_name(shown.early, text))
    interval = shown.busiest_interval
    if interval is None:
        return counts
    return f"{counts} {text['time_moment'].format(count=interval.amount, **_between(shown, interval.later, text))}"
