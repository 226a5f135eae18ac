"""What the time-lapse says in words: names of steps, answers with their shared words, when heads took up their jobs."""

import math
from collections.abc import Sequence
from itertools import groupby

from charts.toolkit.numbers import whole
from charts.toolkit.style import three_digits
from transformer.files.model_card import began_as
from transformer.heads.roles_through_training import Moment, greatest_turn, settled_heads, settled_moment, shared_words
from transformer.runs.head_places import Head
from ui.lab.role_names import role_text
from ui.words.texts import PageText, as_plain, page_text

_LONGEST_RUN = 5  # an untrained model writes one word over and over; more than that become "word ×25"


def step_name(moment: Moment, text: PageText) -> str:
    """ "1,500", or "final" where the checkpoint does not tell its step."""
    return text["time_final"] if moment.step is None else whole(moment.step, language=text.language)


def step_names(moments: Sequence[Moment], text: PageText, *, card: str) -> list[str]:
    """The names on the slider; the first says what it began as (by the model card), the last that it is final."""
    names = [step_name(moment, text) for moment in moments]
    if moments[0].step == 0:
        names[0] = text["time_untrained"] if began_as(card) is None else text["time_before"]
    if moments[-1].step is not None:
        names[-1] = text["time_last"].format(step=whole(moments[-1].step, language=text.language))
    return names


def marked(answer: str, other: str) -> str:
    """``answer`` as Markdown, the words that ``other`` has, too, in green; long runs of one word are counted."""
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


def probability(moment: Moment) -> str:
    """Of the finished model's answer, a token on average (geometric mean), in per cent."""
    if not moment.n_tokens:
        return "–"
    return f"{three_digits(100 * math.exp(moment.log_probability / moment.n_tokens))} %"


def story(moments: Sequence[Moment], place: Head, text: PageText) -> str:
    """When one head took up its job, and when its map changed most, in two sentences."""
    heads = page_text("heads")
    kind = heads[f"kind_{place.stack}_{place.kind}"]
    named = text["time_head"].format(layer=place.layer, head=place.head, kind=kind)
    turn, change = greatest_turn(moments, place)
    changed = text["time_turn"].format(change=three_digits(100 * change), **_between(moments, turn, text))
    index = settled_moment(moments, place)
    if index is None:
        return f"{text['time_story_none'].format(head=named)} {changed}"
    role = role_text(moments[-1].role(place), heads)
    if index == 0:
        return f"{text['time_story_always'].format(head=named, role=role)} {changed}"
    since = step_name(moments[index], text)
    return f"{text['time_story'].format(head=named, role=role, step=since)} {changed}"


def _between(moments: Sequence[Moment], index: int, text: PageText) -> dict[str, str]:
    return {"before": step_name(moments[index - 1], text), "after": step_name(moments[index], text)}


def summary(moments: Sequence[Moment], text: PageText) -> str:
    """How many heads have a job at first and in the end, and between which two steps most of them took it up."""
    counts = [len(places) for places in settled_heads(moments)]
    total, (first, last) = len(moments[-1].roles), (moments[k].clear_roles for k in (0, -1))
    said = text["time_summary"].format(total=total, first=first, last=last, step=step_name(moments[0], text))
    if len(moments) < 2 or not max(counts[1:]):
        return said
    index = max(range(1, len(moments)), key=lambda k: counts[k])
    return f"{said} {text['time_moment'].format(count=counts[index], **_between(moments, index, text))}"
