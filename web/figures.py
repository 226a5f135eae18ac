"""What the browser needs for the figures of a checkpoint: their metadata and texts.

The browser adds what depends on the sentence: tokens, numbers, predictions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from charts.canvas.attention_maps import KEY_TITLE, attention_map, attention_name, predicted_rows, row_title, title_of
from charts.canvas.attention_overview import attention_overview
from charts.canvas.living_picture_canvas import living_picture_canvas
from charts.canvas.value_map import value_map
from charts.toolkit.style import three_digits
from charts.toolkit.words import localize, say
from transformer.attention_maps.attention_path import AttentionPath, OutputSum, attention_path, output_sum
from transformer.config import LEVELS, PictureConfig
from transformer.files.checkpoints import Checkpoint
from transformer.files.opening_file import in_language, read_opening
from transformer.predictions.living_picture_numbers import living_picture_numbers
from transformer.runs.inputs import MAX_CHARACTERS
from transformer.runs.traces import Trace
from transformer.runs.tracing import trace
from ui.shell.selectors import text_for
from ui.words.figure_texts import browser_words
from ui.words.texts import common, language, page_text, use_language

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
_MASK_TEXTS = (
    *("preset", "preset_own", "preset_no_causal", "preset_window", "preset_window_encoder", "preset_itself"),
    *("preset_word", "size", "word", "scope", "scope_layer", "scope_all", "reset"),
)
_PATH_TEXTS = (
    *("section_path", "section_trust", "steps", "step", "step_2", "step_3_chooses", "step_4", "step_4_causal"),
    *("step_4_other", "step_4_never", "step_5", "step_5_shapes", "step_6"),
    *("row_reads", "row_predicts"),
    *("effect", "effect_of_one", "effect_value", "effect_of", "effect_what", "effect_what_text", "effect_help"),
    *("effect_none", "class_token", "aloud_nothing", "aloud_other", "aloud_then", "aloud_then_to"),
    *("aloud_mostly", "aloud_spread", "aloud_mostly_predicting", "aloud_spread_predicting"),
    *(
        "trust_words",
        "trust_words_alone",
        "trust_row",
        "trust_row_predicts",
        "trust_unit_log_probability",
        "trust_head",
    ),
)
_PATH_WORDS = (  # of views/attention/attention_row_figures.py and trust_figure.py
    "score",
    "power",
    "weight",
    "{n} other tokens together",
    "sum = output of the head",
    "weight × value",
    "channel of the head (d_v = {n})",
    "channel {channel}",
    "adds {value}",
    "output {value}",
    "mean of all heads",
    "leave one out",
    "token that is read",
    "head {head}",
    "bias b_O",
    "sum = output",
)
_FRAMING = ("before", "after", "answer", "given", "ends", "end", "never")
_STEP_TEXTS = (
    "after",
    "at_beginning",
    "comes_greedy",
    "comes_greedy_end",
    "comes_given",
    "comes_given_first",
    "comes_forced",
)


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
    if isinstance(config, PictureConfig):
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
        "framing": {
            part: list(getattr(framing, part))
            for part in ("before", "after", "answer", "given", "ends", "end", "never")
        },
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
    found["path"] = _path(run)
    page = text_for(page_text("masks"), run.checkpoint.config)
    found["masks"] = {name: page[name] for name in _MASK_TEXTS}
    if run.checkpoint.config.has_decoder:
        page = page_text("decoding")
        heads = run.checkpoint.config.n_heads
        found["steps"] = {
            "title": say("names.text_steps"),
            "of": [
                page["attention_of_mean"].format(layer=layer, count=heads) for layer in range(run.n_layers("decoder"))
            ],
            "said": {name: page[name] for name in _STEP_TEXTS},
        }
    return found


def _path(run: Trace) -> dict[str, Any]:
    """Return the texts of the seven steps of a head, and the metadata of their maps, by kind of attention."""
    page = text_for(page_text("attention"), run.checkpoint.config)
    said: dict[str, Any] = {name: page[name] for name in _PATH_TEXTS}
    said["words"] = {name: localize(name) for name in _PATH_WORDS}
    if isinstance(run.checkpoint.config, PictureConfig):
        said |= {name: common(f"picture.{name}", name="{name}") for name in ("patch", "empty_patch")}
    kinds = {}
    for stack, kind in run.attention_kinds():
        found = attention_path(run, stack, 0, kind, head=0)
        rule, module = found.rule, run.checkpoint.model.get_submodule(found.view.name)
        names = ["step_1" if module.query_projection.bias is not None else "step_1_unbiased"]
        names += ["step_1_cross"] if kind == "cross" else []
        scaled = "step_3" if rule.radicand == found.d_head else "step_3_scale" if rule.is_scaled else "step_3_unscaled"
        output = output_sum(run, stack, 0, kind, row=0)
        numbers = {
            **{"d_head": found.d_head, "d_model": run.checkpoint.config.d_model},
            **{"root": three_digits(found.d_head**0.5), "scale": three_digits(rule.scale)},
        }
        kinds[f"{stack}.{kind}"] = {
            "maps": _step_maps(run, found, output),
            "step_1": " ".join(_fill(page[name], numbers) for name in names),
            "step_3": _fill(page[scaled], numbers),
            "step_7": _fill(page["step_7" if output.bias is not None else "step_7_unbiased"], numbers),
            "biased": output.bias is not None,
            "scaled": rule.is_scaled and found.bias is None and rule.cap is None,
        }
    return said | {"kinds": kinds}


def _fill(text: str, values: Mapping[str, object]) -> str:
    """Fill in what does not depend on the sentence; the browser fills in the rest."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text


def _step_maps(run: Trace, found: AttentionPath, output: OutputSum) -> dict[str, Any]:
    """Return the metadata of the maps of the steps, as views/attention/attention_steps.py draws them."""
    page, queries = page_text("attention"), found.view.query.labels
    shifted = predicted_rows(run, found.view.kind)
    maps = {}
    for name, values in (("query", found.query), ("key", found.key), ("value", found.value)):
        title = page[f"title_{name}"]
        maps[name] = value_map(
            values,
            row_labels=queries if name == "query" else found.view.key.labels,
            column_labels=[str(channel) for channel in range(found.d_head)],
            row_title=page["token_axis"],
            column_title=page["channel"],
            title=title,
            value_name=title,
            phrase=("", f" · {page['channel']} "),
        )
    for name, value_name in (("product", "q·k"), ("score", "score")):
        maps[name] = value_map(
            found.products,
            row_labels=queries if shifted is None else shifted,
            column_labels=found.view.key.labels,
            row_title=row_title(shifted=shifted is not None),
            column_title=KEY_TITLE,
            title=value_name,
            value_name=value_name,
            phrase=("", " meets "),
            chosen_row=0,
        )
    maps["sums"] = value_map(
        output.contributions,
        row_labels=[say("names.numbered_head", head=head) for head in range(len(output.contributions))],
        column_labels=[str(channel) for channel in range(output.contributions.shape[1])],
        row_title=say("part_sum"),
        column_title=say("stream_dimension", n=output.contributions.shape[1]),
        title=say("written"),
        value_name=say("written"),
        chosen_row=0,
    )
    return {name: dict(figure.metadata) for name, figure in maps.items()}
