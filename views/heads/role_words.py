"""Texts of the Heads page about the roles of heads, in one sentence or over many. Without Streamlit."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from charts.canvas.attention_heads import HeadWords
from charts.canvas.attention_maps import predicted_rows
from charts.toolkit.numbers import number
from charts.toolkit.numbers import percent as whole_percent
from charts.toolkit.style import percent_digits, three_digits
from transformer.attention import MultiHeadAttention
from transformer.files.checkpoints import Checkpoint
from transformer.heads import weight_patterns
from transformer.heads.annotated_words import LEAST_ABOVE_OFFSET
from transformer.heads.head_roles import LEAST_AWAKE, LEAST_CONSISTENT, CorpusRole, CorpusRoles, HeadRole
from transformer.heads.induction import LEAST_INDUCTION, LONGEST, N_SEQUENCES, InductionTest, repeated_lengths
from transformer.heads.role_measures import ALIGNED, GENERAL, NO_ROLE, ROLES, HeadMeasures
from transformer.heads.weight_patterns import (
    LEAST_BROAD,
    LEAST_LIFT,
    LEAST_MONOTONE,
    LEAST_ON_OFFSET,
    LEAST_ROWS,
    LEAST_SHARE,
    LEAST_WINDOW_LIFT,
)
from transformer.runs.readings import task_before
from ui.lab.role_names import test_name
from ui.words.texts import PageText, as_plain, label_in_words, quoted_word, token_name
from views.heads.heads_view_model import (
    ROLES_HERE,
    HeadsViewModel,
    Place,
    RankedHeads,
    Role,
    place_of,
)

WHERE = ("top_left", "top", "top_right", "left", "middle", "right", "bottom_left", "bottom", "bottom_right")
COLOURS = (0, 1, 2, 3, 4, 6)  # of the theme's kinds of things; the selected head has the fifth

# ---- above and in the maps -------------------------------------------------------------------------------------------


def first_claim(heads: HeadsViewModel, text: PageText) -> str:
    """Return the first sentence of the page."""
    return claim(heads.shown, text) if heads.image_row is None else image_claim(heads, text)


def claim(heads: RankedHeads, text: PageText) -> str:
    """Return how many heads match a named pattern."""
    if heads.is_too_short:
        return text["claim_too_short"]
    count, every = len(heads.clear), len(heads.roles)
    name = "none" if count == 0 else "one" if count == 1 else "all" if count == every else "some"
    where = text["claim_many" if heads.over_many else "claim_here"]
    claimed = text[f"claim_{name}"].format(count=count, heads=every, where=where)
    return f"{claimed} {text['claim_maps']}" if heads.over_many else claimed


def head_words(heads: RankedHeads, text: PageText) -> dict[Place, HeadWords]:
    """Return the function of every head: a few words, a title and a sentence."""
    short = captions(heads, text)
    words = {}
    for head in heads.roles:
        title, sentence = _of_many(head, text) if heads.over_many else _here(head, text)
        words[place_of(head)] = HeadWords(short[place_of(head)], title, sentence)
    return words


def words_here(heads: HeadsViewModel, text: PageText) -> dict[Place, HeadWords]:
    """Return the words of every head, with an example for each that matches no named pattern."""
    words = head_words(heads.shown, text)
    for place in map(place_of, heads.shown.roles):
        if (cell := heads.marked(place)) is not None:
            words[place] = words[place]._replace(sentence=_example(heads, place, cell, text))
    return words


def _example(heads: HeadsViewModel, place: Place, cell: tuple[int, int], text: PageText) -> str:
    weight = float(heads.views[place[0]].weights[place[1]][cell])
    query, key = quoted_word(row_name(heads, cell[0])), quoted_word(key_name(heads, cell[1]))
    named = "example_cross" if heads.location.kind == "cross" else "example"
    return text[named].format(query=query, key=key, weight=_share(weight))


def grouped(heads: HeadsViewModel, text: PageText) -> tuple[dict[Place, int], list[tuple[str, int]]]:
    """Return the colour of every head with a clear pattern, and the meaning of each colour."""
    count = Counter(heads.groups.values())
    names = {name: _group(heads, name, text) for name, _ in count.most_common()}
    colour = {name: COLOURS[min(number, len(COLOURS) - 1)] for number, name in enumerate(names)}
    legend = [
        (text["group_count"].format(name=called, count=count[name]), colour[name]) for name, called in names.items()
    ]
    if len(legend) > len(COLOURS):
        others = sum(count[name] for name in list(names)[len(COLOURS) - 1 :])
        legend[len(COLOURS) - 1 :] = [
            (text["group_count"].format(name=text["group_others"], count=others), COLOURS[-1])
        ]
    return {place: colour[name] for place, name in heads.groups.items()}, legend


def _group(heads: HeadsViewModel, name: str, text: PageText) -> str:
    if heads.speaks_of_many:
        return _test_group(name, text)
    return text["group" if heads.image_row is not None else "role_title"][name]


def _test_group(name: str, text: PageText) -> str:
    """Return what a test is called in the legend, without the offset of one head."""
    called = text["test"].get(name) or text["role"][name]
    return called.replace("{where}", "").replace("{end}", "").replace("  ", " ").strip()


def words_on_image(heads: HeadsViewModel, text: PageText) -> dict[Place, HeadWords]:
    """Which patch the followed token attends to most, in every head."""
    keys, words = heads.views[0].key, {}
    for place in heads.tiles:
        (first, share), (second, less) = heads.patches_of(place)[:2]
        names = [label_in_words(keys.labels[key]) for key in (first, second)]
        strongest = _title(text["image_title"].format(patch=names[0], share=_share(share)))
        sentence = text["image_sentence"].format(patch=names[1], share=_share(less))
        if group := heads.groups.get(place):
            where = ""
            if group != "itself":
                down, across = heads.third_of_image(place)
                where = text["image_where"][WHERE[3 * down + across]]
            title = text["image_group"][group].format(where=where)
            words[place] = HeadWords(number(f"{share:.2f}"), title, f"{strongest}.")
        else:
            words[place] = HeadWords(number(f"{share:.2f}"), strongest, sentence)
    return words


def image_claim(heads: HeadsViewModel, text: PageText) -> str:
    """Return what the maps over an image show, as the first sentence of the page."""
    rows, row = heads.views[0].query, heads.image_row
    return text["image_claim_class" if rows.is_class_token(row) else "image_claim"].format(
        token=token_name(rows.labels[row])
    )


def row_name(heads: HeadsViewModel, query: int) -> str:
    """Return the label of a row as the maps write it: the predicted token for cross-attention."""
    labels = predicted_rows(heads.trace, heads.location.kind) or heads.views[0].query.labels
    return labels[query]


def key_name(heads: HeadsViewModel, key: int) -> str:
    """Return the label of a column."""
    return heads.views[0].key.labels[key]


def captions(heads: RankedHeads, text: PageText) -> dict[Place, str]:
    """Return the strongest test of every head with its score; without tests its role or the nearest kind."""
    found = {}
    for head in heads.roles:
        if heads.has_tests:
            found[place_of(head)] = _test_caption(head.measured, text)
        elif heads.over_many and head.is_induction_head:
            found[place_of(head)] = text["induction_short"]
        else:
            found[place_of(head)] = _role_caption(head, text)
    return found


def _role_caption(head: Role, text: PageText) -> str:
    name = head.nearest if head.role == "none" else head.role
    score = head.scores.get(name, math.nan)
    return f"{text['role_short'][name or head.role]}{'' if math.isnan(score) else ' ' + number(f'{score:.2f}')}"


def _test_caption(measured: HeadMeasures, text: PageText) -> str:
    name = measured.strongest
    if not name:
        return "–"
    return f"{measure_name(name, measured, text, short=True)} {number(f'{measured.measures[name].score:.2f}')}"


def _here(head: HeadRole, text: PageText) -> tuple[str, str]:
    sentence = text["role_sentence"]
    # The head attends to a sink, except from tokens that have occurred before.
    if head.role == "induction" and head.score < LEAST_SHARE:
        numbers = {key: _share(head.scores[name]) for key, name in (("score", head.role), ("awake", "awake"))}
        return text["role_title"][head.role], sentence["awake"].format(**numbers)
    if head.role != "none":
        score = three_digits(head.score) if head.role == "monotone" else _share(head.score)
        return text["role_title"][head.role], sentence[head.role].format(score=score)
    return text["no_role"], ""


def _of_many(head: CorpusRole, text: PageText) -> tuple[str, str]:
    measured = head.measured
    if not measured.strongest or not head.n_sentences:
        return _title(text["role"][head.role]), _title(corpus_role_text(head, text)) + "."
    numbers = _numbers(measured, measured.strongest)
    name = measure_name(measured.strongest, measured, text)
    if measured.clear:
        return _title(name), text["test_sentence"].format(count=head.n_sentences, **numbers)
    return text["no_role"], text["test_sentence_weak"].format(count=head.n_sentences, test=name, **numbers)


def _share(weight: float) -> str:
    """Format a share as a whole percent, but never as all of it where something is missing."""
    return whole_percent(weight, decimals=int(0.995 <= weight < 0.9995))


def _title(name: str) -> str:
    return name[:1].upper() + name[1:]


# ---- one head --------------------------------------------------------------------------------------------------------


def chosen_text(heads: HeadsViewModel, text: PageText, *, brief: bool = False) -> str:
    """Describe the selected head here and over many sentences, and the heads that share its keys.

    If ``brief``, the roles are given without numbers.
    """
    location, over_many, sharing = heads.location, heads.chosen_over_many, heads.sharing_keys
    here, pair = heads.chosen_here, heads.strongest_pair(heads.place)
    name = text[f"kind_{location.stack}_{location.kind}"]
    said = text["chosen"].format(
        layer=location.layer,
        head=location.head,
        kind=name,
        does=text["role_does_one"][here.role],
        how="" if brief else _how(here, text),
    )
    if here.role == "none" and pair is not None and not brief:
        names = {"query": row_name(heads, pair[0]), "key": key_name(heads, pair[1])}
        shown = {name: as_plain(quoted_word(label)) for name, label in names.items()}
        weight = float(heads.views[location.layer].weights[location.head][pair])
        said += text["chosen_edge"].format(**shown, weight=three_digits(weight))
    if over_many is not None:
        said += _over_many(over_many, text, brief=brief)
    return said + (text["shares"].format(first=sharing[0], last=sharing[-1]) if len(sharing) > 1 else "")


def _how(head: HeadRole, text: PageText) -> str:
    """Return ": 73% of its attention", or nothing for a head without a role."""
    if math.isnan(head.score):
        return ""
    if head.role == "monotone":
        return text["chosen_order"].format(score=three_digits(head.score))
    name = head.role if head.role in ("broad", "diagonal", "induction") else "share"
    return text[f"chosen_{name}"].format(share=_share(head.score))


def _over_many(head: CorpusRole, text: PageText, *, brief: bool) -> str:
    """Return a sentence about a head's strongest test, or about its role in a file without tests."""
    measured = head.measured
    if not measured.strongest or not head.n_sentences:
        return text["chosen_many"].format(corpus=corpus_role_text(head, text))
    name = measure_name(measured.strongest, measured, text)
    if brief:
        key = "over_brief_aligned" if measured.strongest in ALIGNED else "over_brief"
        return text[key].format(test=name) if measured.has_role else ""
    said = text["over_clear" if measured.has_role else "over_weightless" if measured.clear else "over_weak"]
    return said.format(count=head.n_sentences, test=name, **_numbers(measured, measured.strongest))


def corpus_role_text(head: CorpusRole, text: PageText) -> str:
    """Return the strongest test of the literature.

    Without tests (an older file): "diagonal, in 54 % of 84 sentences", or no clear role, with the most frequent or the
    nearest one.
    """
    names = text["role"]
    if not head.n_sentences:
        return text["corpus_too_short"]
    if head.measured.strongest:
        return measure_text(head.measured, text)
    share = {"share": percent(head.consistency), "count": head.n_sentences}
    if head.role != "none":
        return text["corpus_role"].format(role=names[head.role], score=three_digits(head.score), **share)
    if head.leaning:
        share["share"] = percent(head.shares[head.leaning])
        return text["corpus_often"].format(role=names["none"], often=names[head.leaning], **share)
    if not head.nearest:
        return text["corpus_none_at_all"].format(role=names["none"], **share)
    nearest = {"nearest": names[head.nearest], "score": three_digits(head.scores[head.nearest])}
    return text["corpus_none"].format(role=names["none"], **share, **nearest)


def percent(share: float) -> str:
    """Format with three digits, as all numbers of a head."""
    return percent_digits(share)


def measure_name(name: str, measured: HeadMeasures, text: PageText, *, short: bool = False) -> str:
    """Return ``test_name`` for one head."""
    return test_name(name, measured.where.get(name, 0), text, short=short)


def measure_text(measured: HeadMeasures, text: PageText) -> str:
    """Return the strongest test of one head with its score, its threshold and its chance level."""
    name = measured.strongest
    said = text["tests_clear" if measured.has_role else "tests_no_role" if measured.clear else "tests_weak"]
    return said.format(test=measure_name(name, measured, text), **_numbers(measured, name))


def roles_text(measured: HeadMeasures, text: PageText) -> str:
    """Return every role of one head by the tests, the strongest first; a single one as ``measure_text``.

    A head may be a sink in most sentences and an induction head where a word is repeated.
    """
    reached = [
        (one.strength, name)
        for name, one in measured.measures.items()
        if one.reached and name not in (*GENERAL, *NO_ROLE)
    ]
    if len(reached) < 2:
        return measure_text(measured, text)
    return ", ".join(
        text["tests_clear"].format(test=measure_name(name, measured, text), **_numbers(measured, name))
        for _, name in sorted(reached, reverse=True)
    )


def _numbers(measured: HeadMeasures, name: str) -> dict[str, str]:
    return {key: three_digits(getattr(measured.measures[name], key)) for key in ("score", "chance", "least")}


# ---- all heads -------------------------------------------------------------------------------------------------------


def role_counts(roles: Sequence[HeadRole], text: PageText) -> str:
    """Return "In this sentence: 2 × previous token, 5 × no clear role.", or that it is too short to tell."""
    if RankedHeads(tuple(roles)).is_too_short:
        return text["too_short"].format(least=LEAST_ROWS)
    return text["counted"].format(roles=_counted(roles, ROLES_HERE, text))


def corpus_counts(
    roles: CorpusRoles, heads: Sequence[CorpusRole], text: PageText, checkpoint: Checkpoint, *, name: str
) -> str:
    """Return how many of ``heads`` have which role over the sentences of the list ``name``.

    The text also states the task prefix of the sentences, how many were left out, and what was found about induction.
    """
    tested = RankedHeads(tuple(heads)).has_tests
    said = [_tests_counted(roles, heads, text, name) if tested else _roles_counted(roles, heads, text, name)]
    if task := task_before(checkpoint):
        said.append(text["corpus_task"].format(task=as_plain(task.strip())))
    if roles.n_skipped:
        said.append(text["corpus_skipped"].format(count=roles.n_skipped, limit=checkpoint.config.max_length))
    if roles.induction is not None:
        said.append(_induction(roles.induction, text))
    return " ".join(said)


def _tests_counted(roles: CorpusRoles, heads: Sequence[CorpusRole], text: PageText, name: str) -> str:
    """Return a sentence: how many of these heads, and of all heads, have a role by which test."""
    found = Counter(
        measure_name(head.measured.strongest, head.measured, text) for head in heads if head.measured.has_role
    )
    counts = ", ".join(text["tests_count"].format(count=n, test=test) for test, n in found.most_common())
    return text["tests_counted"].format(
        count=roles.n_sentences,
        name=as_plain(name),
        with_role=found.total(),
        heads=len(heads),
        found=text["tests_found"].format(found=counts) if counts else "",
        all=len(roles.heads),
        all_with_role=sum(head.measured.has_role for head in roles.heads),
    )


def _roles_counted(roles: CorpusRoles, heads: Sequence[CorpusRole], text: PageText, name: str) -> str:
    counted = _counted(heads, ROLES, text)
    return text["corpus_counted"].format(count=roles.n_sentences, name=as_plain(name), roles=counted)


def _counted(roles: Sequence[Role], names: Sequence[str], text: PageText) -> str:
    found = Counter(head.role for head in roles)
    return ", ".join(text["counts"].format(count=found[role], role=text["role"][role]) for role in names if found[role])


def _induction(test: InductionTest, text: PageText) -> str:
    names = [text["induction_head"].format(layer=place.layer, head=place.head) for place in test.heads]
    strongest = test.strongest
    return text["induction_found" if names else "induction_none"].format(
        heads=", ".join(names),
        layer=strongest.layer,
        head=strongest.head,
        score=three_digits(test.induction[strongest]),
        chance=three_digits(test.chance),
        least=three_digits(LEAST_INDUCTION),
    )


# ---- definitions ------------------------------------------------------------------------------------------------


def concatenation(text: PageText, attention: MultiHeadAttention, *, n_rows: int) -> tuple[str, str]:
    """Return MultiHead = Concat(head_0 …) W_O with this sentence's shapes, as LaTeX, and a caption."""
    d_model, together = attention.output_projection.weight.shape
    bias = "" if attention.output_projection.bias is None else " + b_O"
    heads, d_head, last = attention.n_heads, attention.d_head, attention.n_heads - 1
    latex = (
        rf"\underset{{{n_rows} \times {d_model}}}{{\text{{MultiHead}}}} = "
        rf"\underset{{{n_rows} \times {together}}}{{[\text{{head}}_0 \mid \dots \mid \text{{head}}_{{{last}}}]}}\;\;"
        rf"\underset{{{together} \times {d_model}}}{{W_O}}{bias}"
    )
    return latex, text["formula"].format(heads=heads, d_head=d_head, d_model=together, rows=n_rows)


def definitions(text: PageText) -> str:
    """Return all definitions as a Markdown list, with the thresholds of the library."""
    lines = [text["definition_intro"], ""]
    for name, meaning in text["definition"].items():
        lines.append(f"- **{text['role'].get(name) or text['measure_name'][name]}:** {meaning}")
    lines += ["", text["definition_tests"], ""]
    lines += [f"- **{text['definition_test'][name]}:** {meaning}" for name, meaning in text["test_definition"].items()]
    written = "\n".join([*lines, "", text["definition_sources"]])
    for name, value in _thresholds().items():  # str.format would interpret the braces of the formulas
        written = written.replace(f"{{{name}}}", number(str(value)))
    return written


def _thresholds() -> Mapping[str, float]:
    return {
        "share": LEAST_SHARE,
        "lift": LEAST_LIFT,
        "monotone": LEAST_MONOTONE,
        "broad": LEAST_BROAD,
        "consistent": LEAST_CONSISTENT,
        "induction": LEAST_INDUCTION,
        "shortest": min(repeated_lengths(1 + 2 * LONGEST)),
        "longest": LONGEST,
        "sequences": N_SEQUENCES,
        "rows": LEAST_ROWS,
        "awake": LEAST_AWAKE,
        "offset": LEAST_ON_OFFSET,
        "window_lift": LEAST_WINDOW_LIFT,
        "above": LEAST_ABOVE_OFFSET,
        "place": weight_patterns.LEAST_SHARE,
    }
