"""The card of a head: evidence for and against its main pattern, its output, its removal, examples."""

import math
from collections import Counter
from functools import partial

from charts.figures.bars import Bars, bars
from charts.toolkit import style
from charts.toolkit.axes import Axis
from charts.toolkit.numbers import percent
from charts.toolkit.words import say
from transformer.heads.head_atlas import HeadHabits, head_habits
from transformer.heads.head_circuits import reads_words_out, written_words
from transformer.heads.head_roles import HeadRole
from transformer.heads.removed_head import removed_head
from transformer.runs.head_places import Head
from transformer.runs.readings import with_task
from ui.page.page import Page
from ui.sections.sentence_list import SentenceList, sentence_list
from ui.shell.focus import select_sentence
from ui.show.figures import chosen_row, show_figure
from ui.words.texts import common

HALF = 0.5  # share of the rows; anything less is not typical
WRITTEN = 5  # attended tokens whose output is described
_TABLE = "examples-of-a-head"


def card(p: Page, over_many: HeadRole | None, *, tests: str) -> None:
    """Draw the card of the selected head over the included sentences or the reader's own.

    ``tests`` says which tests of the literature it reaches over many sentences, if that is known.
    """
    read, place = sentence_list(p), p.selected_head
    sentences = read.sentences
    p.known(place, repr(place), imports="from transformer.runs.head_places import Head")
    main = f"[{place!r}].main"
    found = p.calc(
        head_habits, p.checkpoint, sentences, name="habits", slow=True, shows=(f"{main}.kind", f"{main}.share")
    )
    if found is None:
        return
    if (habits := found.get(place)) is None:
        p.say("card_nothing", small=True, count=len(sentences))
        return
    claims(p, habits)
    if unread := len(sentences) - habits.n_sentences:
        p.say("card_unread", small=True, count=unread, limit=p.checkpoint.config.max_length)
    if tests:
        p.say("card_tests", test=tests)
        if copying := over_many.measures.get("copying"):
            p.say("card_copying", score=copying.score)
    written(p, place, habits)
    if p.toggle("card_remove", key="heads_card_remove"):
        gone = p.calc(removed_head, p.checkpoint, sentences, place, name="removed", slow=True, shows=(".alone",))
        if gone is not None and gone.n_words:
            more = {"sentences": gone.n_sentences, "words": gone.n_words, "change": gone.alone}
            p.say("card_removed", factor=math.exp(gone.alone), **more)
        elif gone is not None:
            p.say("card_removed_nothing")
    shown = [habit for habit in habits.habits if habit.share or habit.chance]
    found, chances = [habit.share for habit in shown], [habit.chance for habit in shown]
    own, chance = say("names.this_head"), say("heads.chance")
    figure = bars(
        [
            Bars(found, f"%{{y}}, {own}", own, texts=list(map(percent, found))),
            Bars(chances, f"%{{y}}, {chance}", chance, style.MASKED, texts=()),
        ],
        rows=Axis(say("heads.target_axis"), [p.text["card_kinds"][habit.kind] for habit in shown]),
        across=say("heads.share_axis"),
        limits=(0, 1.15 * max(*found, *chances, 0.1)),
    )
    show_figure(figure, name="where-a-head-looks", caption=p.md("card_where_caption"), alt=p.words("card_where_alt"))
    examples(p, habits, read)


def claims(p: Page, habits: HeadHabits) -> None:
    """Write the evidence for and against a head's main pattern, and whether two halves of the data agree."""
    main, against, kinds = habits.main, habits.against, p.text["card_kinds"]
    p.say(
        "card_for", share=main.share, rows=habits.n_rows, sentences=habits.n_sentences, place=kinds[main.kind],
        chance=main.chance,
    )  # fmt: skip
    if main.share < HALF:
        p.say("card_no_habit")
    if against is None:
        p.say("card_never")
    else:
        example = f" {against.examples[0].in_context}" if against.examples else ""
        p.say("card_against", rest=1 - main.share, place=kinds[against.kind], share=against.share, example=example)
    p.say("card_stable" if habits.is_stable else "card_unstable", first=main.halves[0], second=main.halves[1])


def written(p: Page, place: Head, habits: HeadHabits) -> None:
    """Show which words the head's weights promote when it attends to the tokens of its examples."""
    keys = Counter(one.read[one.key].id for habit in habits.habits for one in habit.examples)
    tokens = tuple(id for id, _ in keys.most_common(WRITTEN))
    found = p.calc(
        written_words, p.checkpoint.model, place.stack, place.kind, layer=place.layer, head=place.head, tokens=tokens,
        name="written", shows=("",), wait="wait.circuits",
    )  # fmt: skip
    words = "logits" if reads_words_out(p.checkpoint.model, place.stack) else "directions"
    display = p.checkpoint.tokenizer.display
    rows = [
        {
            "writes": display(one.token),
            f"raised_{words}": ", ".join(map(display, one.raised)),
            f"lowered_{words}": ", ".join(map(display, one.lowered)),
        }
        for one in found
    ]
    if rows:
        p.table(rows, name="words-a-head-writes", caption=p.md(f"card_writes_{words}"), height="content")


def examples(p: Page, habits: HeadHabits, read: SentenceList) -> None:
    """List examples of each kind of position; a click on one shows its sentence on all pages."""
    found = [(habit, one) for habit in sorted(habits.habits, key=lambda habit: -habit.share) for one in habit.examples]
    rows = [
        {
            "place": p.text["card_kinds"][habit.kind],
            "share": habit.share,
            common("fires.weight"): one.value,
            common("fires.query"): one.asked[one.query].display,
            common("fires.key"): one.read[one.key].display,
            common("fires.context"): one.in_context,
        }
        for habit, one in found
    ]
    targets = [(with_task(p.checkpoint, read.sentences[one.sentence]), one.query) for _, one in found]
    p.table(
        rows, name=_TABLE, caption=p.md("card_examples_caption"), height="content",
        on_select=partial(_follow, targets), selection_mode="single-row",
    )  # fmt: skip


def _follow(targets: list[tuple[str, int]]) -> None:
    if target := chosen_row(_TABLE, targets):
        select_sentence(*target)
