"""``python -m transformer atlas``: the cards of all heads as one HTML file and as data files."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from charts.canvas.value_map import value_map
from charts.documents.document_parts import Drawing, Fold, Paragraph, Section, Table
from charts.toolkit.numbers import percent, whole
from charts.toolkit.style import three_digits
from transformer.disk.whole_files import write_text
from transformer.files.checkpoints import Checkpoint
from transformer.heads.firing_examples import Progress
from transformer.heads.head_atlas import Habits, HeadHabits, head_habits, write_data
from transformer.text.sentence_files import sentence_digest
from ui.lab.firing_list import in_context
from ui.show.documents import document_of
from ui.words.texts import PageText, as_plain, page_text
from views.heads.head_card import claims, share_text
from views.heads.report import habits_table, layer_name, place_name

PAGE = "atlas.html"


def write_atlas(
    folder: Path, checkpoint: Checkpoint, sentences: Sequence[str], *, file: str, progress: Progress | None = None
) -> Iterator[Path]:
    """Write all files one by one and yield their paths. ``file`` is the name of the sentence list."""
    found = head_habits(checkpoint, sentences, progress=progress)
    write_text(folder / PAGE, atlas_page(checkpoint, found, sentences, file=file))
    yield folder / PAGE
    yield from write_data(folder, checkpoint, found, sentences)


def atlas_page(checkpoint: Checkpoint, found: Habits, sentences: Sequence[str], *, file: str) -> str:
    """Return the whole HTML file in the current language."""
    page = page_text("heads")
    text, words = page["atlas"], page["report"]
    title = text["title"].format(checkpoint=checkpoint.name)
    lead = words["lead"].format(
        checkpoint=as_plain(checkpoint.name),
        fingerprint=checkpoint.short_fingerprint,
        parameters=whole(checkpoint.model.n_parameters),
        heads=len(found),
        count=len(sentences),
        file=as_plain(file),
        digest=sentence_digest(sentences),
    )
    by_layer: dict[tuple, list[HeadHabits]] = {}
    for head, habits in found.items():
        by_layer.setdefault(head[:3], []).append(habits)
    every = Section(
        "every_head",
        text["all"],
        words["habits_question"],
        (Paragraph(words["habits_says"]), habits_table(found, words)),
    )
    layers = [
        Section(
            "_".join(map(str, place)),
            layer_name(own[0].head, words),
            text["question"],
            (Paragraph(text["says"]), _map(own, page), *(_card(habits, page) for habits in own)),
        )
        for place, own in by_layer.items()
    ]
    lead = [Paragraph(lead), Paragraph(words["caution"], kind="hint")]
    return document_of(checkpoint, title, [every, *layers], lead=lead)


def _map(own: Sequence[HeadHabits], page: PageText) -> Drawing:
    """Draw kind of position × head: the share of the rows; a click on a cell shows its examples."""
    text, words = page["atlas"], page["report"]
    kinds = [page["card_kinds"][habit.kind] for habit in own[0].habits]
    return Drawing(
        value_map(
            np.array([[habit.share for habit in habits.habits] for habits in own]).T,
            row_labels=kinds,
            column_labels=[str(habits.head.head) for habits in own],
            row_title=words["habit"],
            column_title=words["head"],
            scale="sequential",
            limit=1.0,
            title=text["map"].format(layer=layer_name(own[0].head, words)),
            value_name=page["card_column_share"],
        ),
        [
            [
                [
                    text["cell"].format(
                        head=place_name(habits.head, words),
                        kind=kind,
                        share=percent(habits.habits[row].share),
                        chance=percent(habits.habits[row].chance),
                    ),
                    *map(in_context, habits.habits[row].examples),
                ]
                for habits in own
            ]
            for row, kind in enumerate(kinds)
        ],
    )


def _card(habits: HeadHabits, page: PageText) -> Fold:
    """Return the description of one head, collapsed, with the examples of every interval."""
    kind, share = page["card_kinds"][habits.main.kind], percent(habits.main.share)
    parts: list[Paragraph | Table] = [Paragraph(sentence) for sentence in claims(page, habits)]
    for measure, intervals in habits.intervals.items():
        headings = (page["card_column_strength"], page["card_column_share"], page[f"card_value_{measure}"])
        rows = [
            (
                f"{three_digits(interval.low)} … {three_digits(interval.high)}",
                share_text(page, interval.share, rare=interval.is_rare),
                one.value,
                in_context(one),
            )
            for interval in reversed(intervals)
            for one in interval.examples
        ]
        parts.append(Paragraph(page[f"card_caption_{measure}"].format(mean=three_digits(habits.means[measure]))))
        parts.append(Table((*headings, page["atlas"]["examples"]), rows))
    return Fold(
        page["atlas"]["card"].format(head=place_name(habits.head, page["report"]), kind=kind, share=share), parts
    )
