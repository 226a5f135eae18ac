"""``python -m transformer explain``: measurements of a model's heads and parts as an HTML file."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

import transformer
from charts.canvas.value_map import value_map
from charts.documents.document_parts import Drawing, Fold, Listing, Paragraph, Part, Section, Table
from charts.toolkit.numbers import percent, whole
from charts.toolkit.style import three_digits
from charts.toolkit.words import localize
from transformer.heads.checkpoint_report import CheckpointReport, Progress, checkpoint_report
from transformer.heads.head_atlas import HeadHabits
from transformer.runs.head_places import Head
from transformer.text.sentence_files import SHIPPED, read_sentences
from ui.lab.firing_list import in_context
from ui.show.documents import document_of
from ui.words.texts import as_plain, page_text
from views.heads.role_words import corpus_role_text

_STRONGEST = 15  # rows of a table
Text = Mapping[str, str]


def report_of(folder: str | Path, sentences: str | Path | None = None, *, progress: Progress | None = None) -> str:
    """Return the report of the checkpoint in ``folder`` over the sentences of a file.

    Raises ``CheckpointError`` and ``InputError`` as ``transformer.load`` and ``read_sentences`` do.
    """
    checkpoint, path = transformer.load(folder), Path(sentences or SHIPPED)
    found = checkpoint_report(checkpoint, read_sentences(path), progress=progress)
    return report(found, sentence_file=path.name)


def report(found: CheckpointReport, *, sentence_file: str) -> str:
    """Return the whole file in the current language."""
    text, checkpoint = page_text("heads")["report"], found.checkpoint
    title = text["title"].format(checkpoint=checkpoint.name)
    lead = text["lead"].format(
        checkpoint=as_plain(checkpoint.name),
        fingerprint=checkpoint.short_fingerprint,
        parameters=whole(checkpoint.model.n_parameters),
        heads=len(found.roles.heads),
        count=found.roles.n_sentences,
        file=as_plain(sentence_file),
        digest=found.roles.digest,
    )
    skipped = [text["skipped"].format(count=found.roles.n_skipped)] if found.roles.n_skipped else []
    sections = (("roles", _roles), ("habits", _habits), ("importance", _importance), ("parts", _parts))
    sections += (("firings", _firings),)
    return document_of(
        checkpoint,
        title,
        [Section(name, text[name], text[f"{name}_question"], make(found, text)) for name, make in sections],
        lead=[Paragraph(lead), *map(Paragraph, skipped), Paragraph(text["caution"], kind="hint")],
    )


def _roles(found: CheckpointReport, text: Text) -> list[Part]:
    page = page_text("heads")
    rows = [(place_name(Head(*_of(head)), text), corpus_role_text(head, page)) for head in found.roles.heads]
    return [Paragraph(text["roles_says"]), Table((text["head"], text["role"]), rows)]


def _habits(found: CheckpointReport, text: Text) -> list[Part]:
    return [Paragraph(text["habits_says"]), habits_table(found.habits, text)]


def habits_table(found: Mapping[Head, HeadHabits], text: Text) -> Table:
    """Return the function of every head, and the evidence against it."""
    kinds = page_text("heads")["card_kinds"]
    rows = []
    for head, habits in found.items():
        main, against = habits.main, habits.against
        other = ""
        if against is not None and against.examples:
            other = f"{kinds[against.kind]} ({percent(against.share)}): {in_context(against.examples[0])}"
        halves = " / ".join(map(percent, main.halves))
        rows.append(
            (place_name(head, text), kinds[main.kind], percent(main.share), percent(main.chance), other,
             halves if habits.is_stable else f"{halves} {text['unstable']}")
        )  # fmt: skip
    headings = tuple(text[name] for name in ("head", "habit", "share", "chance", "against", "halves"))
    return Table(headings, rows)


def _importance(found: CheckpointReport, text: Text) -> list[Part]:
    rows = sorted(found.importance.items(), key=lambda row: -row[1].kl)[:_STRONGEST]
    values = {(layer_name(head, text), head.head): one.kl for head, one in found.importance.items()}
    return [
        Paragraph(text["importance_says"].format(count=len(found.traced), heads=len(found.importance))),
        _map(values, title=text["importance_title"], value_name=text["kl"], text=text),
        Table(
            (text["head"], text["kl"], text["change"]),
            [(place_name(head, text), one.kl, one.change) for head, one in rows],
        ),
    ]


def _parts(found: CheckpointReport, text: Text) -> list[Part]:
    if not found.parts:
        return [Paragraph(text["parts_nothing"])]
    rows = sorted(found.parts.items(), key=lambda row: -row[1].size)[:_STRONGEST]
    values = {
        (text["layer_of"].format(what=text[part.kind], layer=part.layer), max(part.head, 0)): share.size
        for part, share in found.parts.items()
        if part.kind in ("self_attention", "cross_attention", "feed_forward")
    }
    says = text["parts_says"].format(words=found.n_words, count=len(found.traced))
    return [
        Paragraph(says + (f" {text['parts_gated']}" if found.gated else "")),
        _map(values, title=text["parts_title"], value_name=text["size"], text=text),
        Table(
            (text["part"], text["size"], text["mean"]),
            [(localize(part.label), share.size, share.mean) for part, share in rows],
        ),
    ]


def _firings(found: CheckpointReport, text: Text) -> list[Part]:
    lists = [
        Fold(
            f"{place_name(head, text)}: {three_digits(firings[0].value)}",
            [Listing([f"{three_digits(firing.value)}  {in_context(firing)}" for firing in firings])],
        )
        for head, firings in sorted(found.firings.items(), key=lambda row: list(found.importance).index(row[0]))
    ]
    return [Paragraph(text["firings_says"]), *(lists or [Paragraph(text["firings_nowhere"])])]


def _map(values: Mapping[tuple[str, int], float], *, title: str, value_name: str, text: Text) -> Drawing:
    """Return one row per layer, with the columns of the widest layer; missing heads are hatched."""
    rows = list(dict.fromkeys(row for row, _column in values))
    columns = 1 + max(column for _row, column in values)
    table_of = np.array([[values.get((row, column), np.nan) for column in range(columns)] for row in rows])
    return Drawing(
        value_map(
            np.nan_to_num(table_of),
            row_labels=rows,
            column_labels=[str(column) for column in range(columns)],
            row_title=text["layer"],
            column_title=text["head"],
            scale="sequential",
            allowed=np.isfinite(table_of),
            title=title,
            value_name=value_name,
            masked_text=text["no_such"],
        )
    )


def _of(head: object) -> Sequence:
    return head.stack, head.kind, head.layer, head.head


def layer_name(head: Head, text: Text) -> str:
    """Return the name of a head's layer."""
    return text["layer_of"].format(what=text[f"{head.stack}_{head.kind}"], layer=head.layer)


def place_name(head: Head, text: Text) -> str:
    """Return the name of a head with its layer."""
    return text["head_of"].format(what=text[f"{head.stack}_{head.kind}"], layer=head.layer, head=head.head)
