"""The card of a head: its function, evidence for and against it, and examples of each kind."""

import math
from collections import Counter
from collections.abc import Sequence
from functools import partial

import pandas as pd
import streamlit as st

from charts.toolkit.numbers import percent, whole
from charts.toolkit.style import signed, three_digits
from transformer.heads.firing_examples import Example
from transformer.heads.head_atlas import HeadHabits, head_habits
from transformer.heads.head_circuits import reads_words_out, written_words
from transformer.heads.head_roles import CorpusRole
from transformer.heads.removed_head import RemovedHead, removed_head
from transformer.runs.head_places import Head
from transformer.runs.readings import with_task
from ui.compute.jobs import jobs
from ui.compute.store import store
from ui.lab.firing_list import in_context
from ui.lab.sentence_list import SentenceList, sentence_list
from ui.page.page import Page
from ui.shell import choice
from ui.shell.choice import chosen_option
from ui.shell.focus import select_sentence
from ui.shell.guidance.way import mark_opened
from ui.show.figures import chosen_row, show_figure, show_snippet, show_source, show_table
from ui.words.texts import PageText, as_plain, common
from views.heads.head_figures import habit_bars, strength_bars
from views.heads.role_words import roles_text

CARD = "head card"  # the container below the maps
_TABLE = "examples-of-a-head"
_HALF = 0.5  # share of the rows; anything less is not typical
_WRITTEN = 5  # attended tokens whose output is described


def card(p: Page, head: Head, roles: Sequence[CorpusRole]) -> None:
    """Draw the card of a head over the included sentences or the reader's own.

    ``roles``: roles of all heads of its kind over many sentences, if they are known.
    """
    read = sentence_list()
    checkpoint = p.checkpoint
    found = jobs.result(
        checkpoint,
        ("head habits", read.digest),
        lambda report: head_habits(checkpoint, read.sentences, progress=report),
        saying=lambda done, total: common("sentences.reading", done=done, total=total),
    )
    if found is None:
        return
    habits = found.get(head)
    if habits is None:
        st.caption(p.text["card_nothing"].format(count=len(read.sentences)))
        return
    for sentence in claims(p.text, habits):
        st.markdown(sentence)
    if unread := len(read.sentences) - habits.n_sentences:
        st.caption(p.text["card_unread"].format(count=whole(unread), limit=whole(checkpoint.config.max_length)))
    this = next((one for one in roles if (one.layer, one.head) == (head.layer, head.head)), None)
    if this is not None and this.measured.strongest:
        st.markdown(p.text["card_tests"].format(test=roles_text(this.measured, p.text)))
        if copying := this.measured.measures.get("copying"):
            st.markdown(p.text["card_copying"].format(score=signed(copying.score)))
    _writes(p, habits)
    _removed(p, head, same_role(this, roles), read)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        by = chosen_option(p.text, "card_by", ["kind", "strength"], key="heads_card_by")
        measure = chosen_option(
            p.text, "card_measure", list(habits.intervals), key="heads_card_measure", owner=tuple(habits.intervals)
        )
    if "effect" not in habits.intervals:
        st.caption(p.text["card_no_effect"])
    _pictures(p, habits, measure)
    _examples(p, habits, by, measure, read)
    show_snippet("head habits", _snippet(p, head, read))
    show_source(head_habits, written_words, removed_head)


def open_card() -> None:
    """Show the card and scroll to it (a callback)."""
    choice.put("heads_section", "card")
    mark_opened(CARD)


def claims(text: PageText, habits: HeadHabits) -> list[str]:
    """Write the evidence for and against, and whether both halves of the sentences agree."""
    main, against = habits.main, habits.against
    names = text["card_kinds"]
    said = [
        text["card_for"].format(
            share=percent(main.share), rows=whole(habits.n_rows), sentences=whole(habits.n_sentences),
            place=names[main.kind], chance=percent(main.chance),
        )
    ]  # fmt: skip
    if main.share < _HALF:
        said[0] += " " + text["card_no_habit"]
    if against is None:
        said.append(text["card_never"])
    else:
        example = f" {as_plain(in_context(against.examples[0]))}" if against.examples else ""
        said.append(
            text["card_against"].format(
                rest=percent(1 - main.share), share=percent(against.share), place=names[against.kind], example=example
            )
        )
    first, second = map(percent, main.halves)
    said.append(text["card_stable" if habits.is_stable else "card_unstable"].format(first=first, second=second))
    return said


def same_role(this: CorpusRole | None, roles: Sequence[CorpusRole]) -> tuple[Head, ...]:
    """Return the other heads with the role of this one; none if it has no role."""
    if this is None or not this.measured.has_role:
        return ()
    role = this.measured.strongest
    others = [one for one in roles if one is not this and one.measured.has_role and one.measured.strongest == role]
    return tuple(one.place for one in others)


def looked_at(habits: HeadHabits) -> tuple[int, ...]:
    """Return ids of the tokens that the head attends to most often in its examples."""
    keys = Counter(one.read[one.key].id for habit in habits.habits for one in habit.examples)
    return tuple(id for id, _ in keys.most_common(_WRITTEN))


def _writes(p: Page, habits: HeadHabits) -> None:
    """Show which words the head's weights promote when it attends to one of those tokens."""
    (stack, kind, layer, head), model = habits.head, p.checkpoint.model
    tokens = looked_at(habits)
    found = store.get(
        p.checkpoint,
        ("written words", habits.head, tokens),
        lambda: written_words(model, stack, kind, layer=layer, head=head, tokens=tokens),
        wait="wait.circuits",
    )
    if not found:
        return
    shown, words = p.checkpoint.tokenizer.display, "logits" if reads_words_out(model, stack) else "directions"
    columns = [p.text[f"card_writes_{name}"] for name in ("token", f"raised_{words}", f"lowered_{words}")]
    rows = [(shown(one.token), *(", ".join(map(shown, ids)) for ids in (one.raised, one.lowered))) for one in found]
    caption = p.text[f"card_writes_{words}"]
    show_table(pd.DataFrame(rows, columns=columns), name="words-a-head-writes", caption=caption, height="content")


def _removed(p: Page, head: Head, group: tuple[Head, ...], read: SentenceList) -> None:
    """Draw the measured effect of removing the head, on request."""
    if not choice.toggle(p.text["card_remove"], key="heads_card_remove", help=p.text["card_remove_help"]):
        return
    checkpoint = p.checkpoint
    found = jobs.result(
        checkpoint,
        ("removed head", head, group, read.digest),
        lambda report: removed_head(checkpoint, read.sentences, head, group, progress=report),
        saying=lambda done, total: common("sentences.reading", done=done, total=total),
    )
    if found is not None:
        for sentence in losses(p.text, found):
            st.markdown(sentence)


def losses(text: PageText, found: RemovedHead) -> list[str]:
    """Show the effect of removing the head, alone and with its group, and the compensation for it."""
    if not found.n_words:
        return [text["card_removed_nothing"]]
    said = [
        text["card_removed"].format(
            sentences=found.n_sentences, words=found.n_words, change=signed(found.alone),
            factor=three_digits(math.exp(found.alone)),
        )
    ]  # fmt: skip
    if found.group:
        said[0] += " " + text["card_removed_group"].format(
            heads=", ".join(f"{one.layer}.{one.head}" for one in found.group),
            change=signed(found.together),
            factor=three_digits(math.exp(found.together)),
        )
    if found.added.size:
        added, lost = float(found.added.mean()), float(found.lost.mean())
        words = text["card_repair" if lost < added else "card_repair_none"]
        said.append(words.format(added=signed(added), lost=signed(lost), difference=three_digits(abs(added - lost))))
    return said


def _pictures(p: Page, habits: HeadHabits, measure: str) -> None:
    intervals = habits.intervals[measure]
    left, right = st.columns([6, 5], gap="medium")
    shown = [habit for habit in habits.habits if habit.share or habit.chance]
    with left:
        show_figure(
            habit_bars(
                [habit.share for habit in shown],
                chances=[habit.chance for habit in shown],
                names=[p.text["card_kinds"][habit.kind] for habit in shown],
            ),
            name="where-a-head-looks",
            caption=p.text["card_where_caption"],
            alt=p.text["card_where_alt"],
        )
    with right:
        show_figure(
            strength_bars(
                [interval.share for interval in intervals],
                edges=[intervals[0].low, *(interval.high for interval in intervals)],
                name=p.text[f"card_column_{measure}"],
            ),
            name="how-strongly-a-head-looks",
            caption=p.text[f"card_caption_{measure}"].format(mean=three_digits(habits.means[measure])),
            alt=p.text["card_strength_alt"],
        )


def _examples(p: Page, habits: HeadHabits, by: str, measure: str, read: SentenceList) -> None:
    text = p.text
    rows: list[tuple[str, float, bool, Example]] = []
    if by == "kind":
        for habit in sorted(habits.habits, key=lambda habit: -habit.share):
            rows += [(text["card_kinds"][habit.kind], habit.share, False, one) for one in habit.examples]
    else:
        for interval in reversed(habits.intervals[measure]):
            name = f"{three_digits(interval.low)} … {three_digits(interval.high)}"
            rows += [(name, interval.share, interval.is_rare, one) for one in interval.examples]
    value = common("fires.weight") if by == "kind" else text[f"card_value_{measure}"]
    show_table(
        pd.DataFrame([_row(p, by, value, *row) for row in rows]),
        name=_TABLE,
        caption=text["card_examples_caption"],
        height="content",
        on_select=partial(_chosen, p, [row[-1] for row in rows], read),
        selection_mode="single-row",
    )


def _row(p: Page, by: str, value: str, name: str, share: float, rare: bool, one: Example) -> dict[str, object]:
    text = p.text
    return {
        text[f"card_column_{by}"]: name,
        text["card_column_share"]: share_text(text, share, rare=rare),
        value: one.value,
        common("fires.query"): one.asked[one.query].display,
        common("fires.key"): one.read[one.key].display,
        common("fires.context"): in_context(one),
    }


def share_text(text: PageText, share: float, *, rare: bool) -> str:
    """Format a share of the rows, and whether it is rare."""
    return f"{percent(share, decimals=2 if rare else 0)}{text['card_rare'] if rare else ''}"


def _chosen(p: Page, examples: Sequence[Example], read: SentenceList) -> None:
    """Show the chosen example on all pages, with its query in focus (called before the next run)."""
    if one := chosen_row(_TABLE, examples):
        sentence = with_task(p.checkpoint, read.sentences[one.sentence])
        select_sentence(sentence, one.query)


def _snippet(p: Page, head: Head, read: SentenceList) -> str:
    return (
        "import transformer\nfrom transformer.runs.head_places import Head\n"
        "from transformer.heads.head_atlas import head_habits\n"
        f"from transformer.text.sentence_files import read_sentences\n\n{p.load_line}"
        f"found = head_habits(checkpoint, {read.python})\n"
        f'habits = found[Head("{head.stack}", "{head.kind}", {head.layer}, {head.head})]\n'
        "for habit in habits.habits:\n    print(habit.kind, habit.share, habit.chance, habit.halves)\n"
        "print(habits.is_stable, habits.means)\n"
        "for measure, intervals in habits.intervals.items():\n"
        "    print(measure, [(interval.low, interval.share) for interval in intervals])\n"
    )
