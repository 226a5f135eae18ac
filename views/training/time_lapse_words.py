"""Texts of the time-lapse: names of steps, outputs with common words, when a map changed most."""

import math
from collections.abc import Sequence
from itertools import groupby

from charts.toolkit.numbers import whole
from charts.toolkit.style import percent_digits
from transformer.files.model_card import began_as
from transformer.files.untrained import SEED
from transformer.heads.sentence_through_training import Moment, shared_words
from transformer.runs.head_places import Head
from ui.words.texts import PageText, as_plain, page_text
from views.training.training_view_model import TrainingViewModel, mean_probability

_LONGEST, _LINE = 100, 50  # characters of an output beside another one, and of one line of it
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


def story(shown: TrainingViewModel, text: PageText) -> str:
    """Say between which two steps the map of one head changed most."""
    turn = shown.greatest_turn
    before, after = (step_name(shown.moments[index], text) for index in (turn.later - 1, turn.later))
    head, change = head_name(shown.location, text), percent_digits(turn.amount)
    return text["time_turn"].format(head=head, before=before, after=after, change=change)
