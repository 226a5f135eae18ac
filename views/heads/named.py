"""The two or three heads with which the Heads page opens, and what it says of every head in a title and a sentence."""

import math
from collections.abc import Sequence

from charts.canvas.attention_heads import MAX_NAMED, HeadWords
from charts.toolkit.style import three_digits
from transformer.heads.head_roles import AT_REST, CorpusRole, HeadRole
from transformer.heads.weight_patterns import LEAST_SHARE
from ui.lab.head_table import captions
from ui.words.texts import PageText
from views.heads.corpus_role_table import clear_captions, corpus_captions, corpus_role_text
from views.heads.measure_words import measure_name

Place = tuple[int, int]  # layer, head
Roles = Sequence[HeadRole | CorpusRole]
RESTING = (*AT_REST, "punctuation", "delimiter")  # where a head rests that has nothing to do


def with_a_job(roles: Roles) -> list[HeadRole | CorpusRole]:
    """Those that do something which has a name, the strongest first. To look everywhere is no job, nor is to rest."""
    return [head for head in _clear(roles) if _job(head) not in (*RESTING, "broad")]


def at_rest(roles: Roles) -> list[HeadRole | CorpusRole]:
    """Those that rest on the same few places, whatever the sentence says."""
    return [head for head in _clear(roles) if _job(head) in RESTING]


def named_heads(roles: Roles) -> list[Place]:
    """Up to three that have a job: each job once. Where all have the same one, its two strongest, and beside them the
    sharpest head that has none. Where no head has a job, the sharpest."""
    found = with_a_job(roles)
    first = list({_job(head): head for head in reversed(found)}.values())
    best = [head for head in found if head in first] + [head for head in found if head not in first]
    others = [head for head in roles if head not in found and head not in at_rest(roles)]
    if len(first) == 1 and len(found) >= MAX_NAMED and others:
        best[MAX_NAMED - 1] = sharpest(others)
    return [_place(head) for head in best[:MAX_NAMED]] or [_place(sharpest(roles))]


def sharpest(roles: Roles) -> HeadRole | CorpusRole:
    """With the least entropy for the keys that it may look at; one at rest only where all are. Of a sentence that is
    too short to tell: the first."""
    resting = at_rest(roles)
    return min(
        [head for head in roles if head not in resting] or roles,
        key=lambda head: _or_most(head.scores.get("broad", math.nan)),
    )


def head_words(roles: Roles, text: PageText) -> dict[Place, HeadWords]:
    """Of every head what it does here, or, of ``CorpusRole``, over many sentences."""
    over_many = isinstance(roles[0], CorpusRole)
    short = corpus_captions(roles, text) if over_many else captions(roles, text)
    alone = not with_a_job(roles)
    words = {}
    for head in roles:
        place = _place(head)
        title, sentence = _of_many(head, text) if over_many else _here(head, text)
        if alone and head is sharpest(roles) and not math.isnan(head.scores.get("broad", math.nan)):
            title = text["named_sharpest"]
        words[place] = HeadWords(short[place], title, sentence)
    return words


def claim(roles: Roles, text: PageText) -> str:
    """How many heads have a job, as the sentence with which the page opens."""
    if all(math.isnan(score) for head in roles for score in head.scores.values()):
        return text["claim_too_short"]
    count, resting, every = len(with_a_job(roles)), len(at_rest(roles)), len(roles)
    many = isinstance(roles[0], CorpusRole)
    name = "none" if count == 0 else "one" if count == 1 else "all" if count == every else "some"
    where = text["claim_many" if many else "claim_here"]
    sentences = [text[f"claim_{name}"].format(count=count, heads=every, where=where)]
    if resting:
        sentences.append(text["claim_resting_one" if resting == 1 else "claim_resting"].format(count=resting))
    if name != "all":
        sentences.append(text["claim_others" if count else "claim_sharpest"].format(count=every - count - resting))
    return " ".join([*sentences, *([text["claim_maps"]] if many else [])])


def _clear(roles: Roles) -> list[HeadRole | CorpusRole]:
    clear = set(clear_captions(roles))
    return sorted((head for head in roles if _place(head) in clear), key=lambda head: -_strength(head))


def _here(head: HeadRole, text: PageText) -> tuple[str, str]:
    sentence = text["role_sentence"]
    if head.role == "induction" and head.score < LEAST_SHARE:  # it rests, but for what followed
        numbers = {key: three_digits(head.scores[name]) for key, name in (("score", head.role), ("awake", "awake"))}
        return _title(text["role"][head.role]), sentence["awake"].format(**numbers)
    if head.role != "none":
        score = three_digits(head.score)
        return _title(text["role"][head.role]), sentence[head.role].format(score=score)
    title = _title(text["role"]["none"])
    if not (nearest := head.nearest):
        return title, sentence["none"]
    score = three_digits(head.scores[nearest])
    return title, sentence["nearest"].format(role=text["role"][nearest], score=score)


def _of_many(head: CorpusRole, text: PageText) -> tuple[str, str]:
    measured = head.measured
    if not measured.strongest or not head.n_sentences:
        return _title(text["role"][head.role]), _title(corpus_role_text(head, text)) + "."
    one = measured.measures[measured.strongest]
    numbers = {key: three_digits(getattr(one, key)) for key in ("score", "chance", "least")}
    name = measure_name(measured.strongest, measured, text)
    if measured.clear:
        return _title(name), text["test_sentence"].format(count=head.n_sentences, **numbers)
    return text["no_job"], text["test_sentence_weak"].format(count=head.n_sentences, test=name, **numbers)


def _job(head: HeadRole | CorpusRole) -> str:
    if isinstance(head, CorpusRole) and head.measured.strongest:
        return head.measured.strongest
    return head.role


def _strength(head: HeadRole | CorpusRole) -> float:
    strength = head.measured.strength if isinstance(head, CorpusRole) and head.measured.strongest else head.score
    return 0.0 if math.isnan(strength) else strength


def _place(head: HeadRole | CorpusRole) -> Place:
    return head.layer, head.head


def _or_most(value: float) -> float:
    return math.inf if math.isnan(value) else value


def _title(name: str) -> str:
    return name[:1].upper() + name[1:]
