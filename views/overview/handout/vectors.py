"""The steps before the first layer: tokens, the rows of E that they look up, and their positions."""

import numpy as np

from charts.canvas.attention_maps import KEY_TITLE, QUERY_TITLE
from charts.canvas.value_map import value_map
from charts.documents.document_parts import Cards, Drawing, Paragraph, Section, Views
from charts.toolkit.numbers import whole
from charts.toolkit.style import three_digits
from transformer.config import PictureConfig
from transformer.runs.next_sentence import is_pair, sentence_letters
from transformer.runs.traces import Trace
from ui.shell.focus import Focus
from ui.words.texts import as_plain, common, page_text
from views.overview.handout.writing import factor, handout_text, named, section, vectors, written


def tokens(trace: Trace, focus: Focus) -> Section:
    """Return every stack's tokens with their ids."""
    text, parts = handout_text(), []
    for stack in trace.stacks:
        cards = tuple((token.display, str(token.id), token.special) for token in trace.tokens(stack))
        config = trace.checkpoint.config
        drawn = isinstance(config, PictureConfig)
        said = text["tokens_picture" if drawn else "tokens_image" if config.reads_images else f"tokens_{stack}"]
        parts += [Paragraph(said.format(count=whole(len(cards) - drawn))), Cards(cards)]
    return section("tokens", trace, parts, look_for=(0, 1))


def embeddings(trace: Trace, focus: Focus) -> Section:
    """Return the rows of E, and their changes before positions are added."""
    page, text, stack = page_text("embeddings"), handout_text(), focus.stack
    if trace.checkpoint.config.reads_images:
        return _patches(trace, stack)
    embedding = getattr(trace.checkpoint.model, stack).embedding
    table = embedding.table.weight.detach().numpy()
    read, name = trace.tokens(stack), f"{stack}.embedding.token"
    rows, recorded, scale = table[list(read.ids)], trace.values(name), embedding.scale

    def lines(row: int, column: int) -> list[str]:
        value = rows[row, column]
        said = [f"E[{read[row].id}, {column}] = {written(value)}"]
        if scale != 1:
            said.append(f"{factor(value)} × {written(scale)} = {written(value * np.float32(scale))}")
        if rows.shape == recorded.shape:
            said.append(named(page["recorded"], written(recorded[row, column])))
        return said

    further = [page[part] for part in ("projection", "norm") if getattr(embedding, part, None) is not None]
    if (segment := f"{stack}.embedding.segment") in trace:
        letter = sentence_letters(trace)[focus.token]
        added = {"letter": letter, "length": three_digits(np.linalg.norm(trace.values(segment)[focus.token]))}
        key = "segments" if is_pair(trace) else "segment"
        further.insert(0, page[key].format(token=as_plain(read[focus.token].display), **added))
    sinusoidal = trace.checkpoint.config.positions == "sinusoidal"
    added = f"{stack}.embedding.position" in trace
    lengths = {
        "before": np.linalg.norm(rows[focus.token]),
        "after": np.linalg.norm(recorded[focus.token]),
        "scale": scale,
    }
    positions = "none" if not added else "sinusoidal" if sinusoidal else "learned"
    how = f"scale_text_{positions if scale != 1 else 'unscaled'}"
    parts = [
        Paragraph(
            text["rows"].format(
                stack=common(f"diagram.{stack}"), vocabulary=whole(len(table)), width=whole(table.shape[1])
            )
        ),
        vectors(rows, read.labels, title=text["rows_title"], lines=lines),
        Paragraph(
            text["of_token"].format(token=as_plain(read[focus.token].display))
            + " "
            + page[how].format(name=name, **{key: three_digits(value) for key, value in lengths.items()})
        ),
        *(Paragraph(sentence) for sentence in further),
    ]
    return section("embeddings", trace, parts, look_for=(0, 1, 2))


def _patches(trace: Trace, stack: str) -> Section:
    """Return the vectors of image patches, which are computed instead of looked up in a table."""
    text, read, recorded = handout_text(), trace.tokens(stack), trace.values(f"{stack}.embedding.token")

    kind = "picture" if isinstance(trace.checkpoint.config, PictureConfig) else "image"

    def lines(row: int, column: int) -> list[str]:
        return [named(f"{read[row].display}, {text['dimension']} {column}", written(recorded[row, column]))]

    parts = [
        Paragraph(text[f"rows_{kind}"].format(width=whole(recorded.shape[1]))),
        vectors(recorded, read.labels, title=text["rows_picture_title"], lines=lines),
    ]
    return section("embeddings", trace, parts, look_for=(0, 1, 2))


def positions(trace: Trace, focus: Focus) -> Section:
    """Return the vectors added for positions, or the part of the model where positions enter instead."""
    text, stack, labels = handout_text(), focus.stack, trace.tokens(focus.stack).labels
    scheme = trace.checkpoint.config.positions
    bias = f"{stack}.position_bias.values"
    if f"{stack}.embedding.position" in trace:
        token, position, total = (trace.values(f"{stack}.embedding.{part}") for part in ("token", "position", "sum"))
        has_segments = f"{stack}.embedding.segment" in trace
        segment = trace.values(f"{stack}.embedding.segment") if has_segments else None
        title = text["part_sum_segment" if has_segments else "part_sum"]

        def lines(row: int, column: int) -> list[str]:
            parts = f"{written(token[row, column])} + {factor(position[row, column])}"
            if segment is not None:
                parts += f" + {factor(segment[row, column])}"
            return [named(title, f"{parts} = {written(total[row, column])}")]

        views = (
            (text["part_position"], (vectors(position, labels, title=text["part_position"], lines=lines),)),
            (text["part_token"], (vectors(token, labels, title=text["part_token"], lines=lines),)),
            (title, (vectors(total, labels, title=title, lines=lines),)),
        )
        parts = [
            Paragraph(text["sum_hint_segment" if has_segments else "sum_hint"]),
            Views("positions", text["shown"], views),
        ]
    elif bias in trace:
        drawn = value_map(
            trace.values(bias)[focus.head],
            row_labels=labels,
            column_labels=labels,
            row_title=QUERY_TITLE,
            column_title=KEY_TITLE,
            title=text["bias_title"].format(head=focus.head),
            value_name=text["value"],
        )
        parts = [Paragraph(text["nothing_added"]), Drawing(drawn)]
    else:
        parts = [Paragraph(text["nothing_added" if scheme != "none" else "no_positions"])]
    return section("positions", trace, parts, look_for=() if scheme == "none" else (0, 1))
