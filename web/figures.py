"""What the browser needs for the figures of a checkpoint: their metadata and texts.

The browser adds what depends on the sentence: tokens, numbers, predictions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from charts.canvas.attention_maps import attention_map, attention_name, attention_overview, predicted_rows, title_of
from charts.canvas.living_picture_canvas import living_picture_canvas
from charts.toolkit.words import localize, say
from transformer.config import LEVELS
from transformer.files.checkpoints import Checkpoint
from transformer.files.opening_file import in_language, read_opening
from transformer.predictions.living_picture_numbers import living_picture_numbers
from transformer.runs.inputs import MAX_CHARACTERS
from transformer.runs.traces import Trace
from transformer.runs.tracing import trace
from ui.shell.focus_controls import text_for
from ui.words.texts import browser_words, common, language, page_text, use_language

# Errors, which are English, and a note: of inputs.py and decoding.py in transformer/runs, and of picture_text.py.
_MESSAGES = {
    "empty": "{what} is empty. Type at least one word, or take one of the examples.",
    "characters": "{what} has {length} characters; at most {most} are allowed. Nothing was cut: shorten it.",
    "tokens": "{what} has {length} tokens, special tokens included, but this model reads at most {limit}. Nothing was "
    "cut: shorten it by about {more} tokens.",
    "room": "The text has {length} tokens, and this model sees at most {limit}: there is no room to write. Shorten it.",
    "unfinished": "The output did not end within {count} tokens; it was stopped there.",
    "sign": "{sign} is not a pixel. This model reads pictures of {size} × {size} pixels: one character for each, from "
    "{first} (nothing) to {last} (full ink), row by row.",
    "pixels": "The picture has {found} pixels; this model reads {size} × {size}, which makes {wanted}: one character "
    "for each, from {first} (nothing) to {last} (full ink), row by row.",
    "sentence": "The sentence",
    "target": "The target",
    "text": "The text",
}
_FACTS = (
    *("effect", "effect_of_one", "effect_value", "effect_of", "effect_what", "effect_what_text", "effect_help"),
    *("effect_none", "class_token", "aloud_nothing", "aloud", "aloud_predicting"),
)
_FORMAT = re.compile(r":[a-z%+0-9]+\}")  # how the app writes a value; the browser's script knows by itself
_FRAMING = ("before", "after", "answer", "given", "ends", "end", "never")
_HOW_CHOSEN = ("greedy", "greedy_end", "given", "given_first", "forced")


def description_of(checkpoint: Checkpoint, languages: tuple[str, ...]) -> dict[str, Any]:
    """Return what the page needs to know about a checkpoint, as JSON values."""
    config, tokenizer, framing = checkpoint.config, checkpoint.tokenizer, checkpoint.framing
    opening = read_opening(checkpoint.path)
    run = trace(checkpoint, opening.first.sentence if opening else "The cat sat on the mat.")
    said = {}
    for one in languages:
        with use_language(one):
            said[one] = _in_this_language(run)
    picture = None
    if config.reads_images:
        signs = LEVELS[: config.n_levels]
        picture = {"size": config.picture_size, "patch": config.patch_size, "signs": signs}
    return {
        "name": checkpoint.name,
        "kind": config.kind,
        "fingerprint": checkpoint.fingerprint,
        "limit": config.max_length,
        "characters": MAX_CHARACTERS,
        "classes": list(config.class_names),
        "heads": config.n_heads,
        "layers": {stack: run.n_layers(stack) for stack in run.stacks},
        "attentions": [list(kind) for kind in run.attention_kinds()],
        "displays": [tokenizer.display(id) for id in range(4 if picture else tokenizer.vocabulary_size)],
        "roles": {id: role for id in range(4) if (role := tokenizer.special.role(id))},
        "picture": picture,
        "framing": {part: list(getattr(framing, part)) for part in _FRAMING},
        "languages": said,
    }


def recorded_picture(checkpoint: Checkpoint) -> bytes:
    """Return the living picture of the checkpoint's opening, for a browser that cannot run the model."""
    opening = read_opening(checkpoint.path)
    run = trace(checkpoint, opening.first.sentence if opening else "The cat sat on the mat.")
    words = browser_words()
    figure = living_picture_canvas(living_picture_numbers(run))
    return (figure.with_metadata(words=words, language=language()) if words else figure).packed()


def opening_of(checkpoint: Checkpoint, languages: tuple[str, ...]) -> dict[str, Any]:
    """Return the opening and the examples of a checkpoint, with their names in every language."""
    opening = read_opening(checkpoint.path)
    if opening is None:
        return {"name": dict.fromkeys(languages, checkpoint.name), "place": {}, "examples": []}
    return {
        "name": {one: in_language(opening.name, one) for one in languages},
        "place": dict(opening.first.place),
        "examples": [
            {
                "sentence": example.sentence,
                "target": example.target,
                "place": dict(example.place),
                "label": {one: in_language(example.label, one) for one in languages},
                "shows": {one: in_language(example.shows, one) for one in languages},
            }
            for example in opening.examples
        ],
    }


def _in_this_language(run: Trace) -> dict[str, Any]:
    layers = [(stack, layer) for stack in run.stacks for layer in range(run.n_layers(stack))]
    picture = dict(living_picture_canvas(living_picture_numbers(run, inside=layers)).metadata)
    views = {
        (stack, kind): [run.attention(stack, layer, kind) for layer in range(run.n_layers(stack))]
        for stack, kind in run.attention_kinds()
    }
    maps, titles = {}, {}
    for (stack, kind), each in views.items():
        shifted = predicted_rows(run, kind)
        drawn = attention_map(each[0], head=0, shifted_labels=shifted)
        maps[f"{stack}.{kind}"] = {**drawn.metadata, "shifted": shifted is not None}
        titles[f"{stack}.{kind}"] = [[title_of(view, head=head) for head in range(view.n_heads)] for view in each]
    words: Mapping[str, str] = browser_words()
    names = {f"{stack}.{kind}": attention_name(each[0]) for (stack, kind), each in views.items()}
    found = {
        "living_picture": picture,
        "maps": maps,
        "titles": titles,
        "names": names,
        "overview": dict(attention_overview(list(views.values())).metadata),
        "messages": {**_MESSAGES, "unfinished": localize(_MESSAGES["unfinished"])},
        "words": dict(words),
        "language": language(),
    }
    page = text_for("attention", run.checkpoint.config)
    facts = {name: _FORMAT.sub("}", page[name]) for name in _FACTS}
    if run.checkpoint.config.reads_images:
        facts |= {name: common(f"picture.{name}", name="{name}") for name in ("patch", "empty_patch")}
    found["facts"] = facts
    if run.checkpoint.config.has_decoder:
        page = page_text("decoding")
        heads = run.checkpoint.config.n_heads
        found["steps"] = {
            "title": say("names.text_steps"),
            "axis": say("names.key_axis"),
            "of": [
                page["attention_of"]["mean"].format(layer=layer, count=heads)
                for layer in range(run.n_layers("decoder"))
            ],
            "said": {
                **{name: page[name] for name in ("after", "at_beginning")},
                **{f"comes_{how}": page["comes"][how] for how in _HOW_CHOSEN},
            },
        }
    return found
