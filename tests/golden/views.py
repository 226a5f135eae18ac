"""What is recorded: models, inputs, and the views of every page, with what their addresses say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

SENTENCE = "My grandmother baked a lemon cake for the neighbours on Sunday afternoon."
OTHER = "My grandmother baked a lemon cake for the neighbours on Monday afternoon."
SIXTY = (
    "When the old captain came back from the sea in the winter, the people of the small town ran down to the harbour, "
    "because they wanted to know whether he had seen their sons, and he told them that the ship had lost its way in "
    "the fog, that nobody was hurt, and that all would be home before Sunday."
)
# Each with the sentence that it is compared with.
TEXTS = {
    "twelve": (SENTENCE, OTHER),
    "pad": ("A <pad> dog 🙂 sleeps <pad> in the sun.", "A <pad> dog 🙂 sleeps <pad> in the rain."),
    "sixty": (SIXTY, SIXTY.replace("Sunday", "Monday")),
}
# Handwritten digits of ``ui/words/sentences.toml``.
THREE = "018aea000ca66g2003007e1000009b0000002g10000008c000402b9000cgec40"
FOUR = "00078000000f2031008a02g201f439c008gggg6001439e000000f3000009a000"
ZERO = "005dd50000ggaf3005g2184004d0048008c0067005f0077000g85f30005ef900"
DIGITS = {"three": (THREE, ZERO), "four": (FOUR, THREE), "zero": (ZERO, FOUR)}

Place = tuple[str, str, int, int, int]  # stack, kind, layer, head, token
ENCODER: tuple[Place, ...] = (("encoder", "self", 1, 2, 4), ("encoder", "self", 0, 0, 2))
DECODER: tuple[Place, ...] = (("decoder", "self", 1, 2, 4), ("decoder", "self", 0, 0, 2))
BOTH: tuple[Place, ...] = (("encoder", "self", 1, 2, 4), ("decoder", "cross", 1, 3, 5), ("decoder", "self", 0, 1, 3))


@dataclass(frozen=True)
class Model:
    """A checkpoint, the places in it that are looked at, and its inputs.

    ``guest``: a folder beside this file, which the code of ``transformers`` runs.
    """

    name: str
    places: tuple[Place, ...]
    inputs: dict[str, tuple[str, str]] = field(default_factory=lambda: TEXTS)
    address: dict[str, str] = field(default_factory=dict)
    guest: bool = False


_ALL = (
    Model("en-fr", BOTH),
    Model("en-fr-sharp", BOTH),
    Model("gpt-en", DECODER),
    Model("bert-en", ENCODER, address={"masked": "4"}),
    Model("sentiment", ENCODER),
    Model("vit-digits", ENCODER, DIGITS),
    Model("llama-like", DECODER, guest=True),
    Model("t5-like", BOTH, guest=True),
)
MODELS = {model.name: model for model in _ALL}
OF_IMAGES = ("overview", "attention", "heads", "embeddings", "decoding", "checkpoint")

EVERYWHERE, ONCE = "every place of the model", "one place of the model"
VIEWS: tuple[tuple[str, str, list[dict[str, str | list[str]]]], ...] = (
    ("overview", EVERYWHERE, [{}]),
    ("tokens", ONCE, [{}]),
    ("embeddings", EVERYWHERE, [{"embeddings section": "lookup"}]),
    ("embeddings", ONCE, [{"embeddings section": name} for name in ("neighbours", "map", "analogies", "training")]),
    (
        "positions",
        ONCE,
        [{"positions view": "order", "order change": name} for name in ("swap", "shuffle", "reverse", "remove")],
    ),
    ("positions", ONCE, [{"positions view": name} for name in ("heatmap", "waves", "similarity", "sum")]),
    ("positions", ONCE, [{"positions view": name} for name in ("angles", "bias", "terms", "distance")]),
    ("attention", EVERYWHERE, [{"attention_show": name} for name in ("map", "lines", "values", "rollout")]),
    ("attention", EVERYWHERE, [{"attention_section": "path", "attention_step": str(step)} for step in range(1, 8)]),
    ("attention", EVERYWHERE, [{"attention_key": "1", "cell_channels": "true", "cell_whole_row": "true"}]),
    ("attention", ONCE, [{"attention_section": name} for name in ("reading", "trust", "general", "fires")]),
    ("heads", EVERYWHERE, [{"heads_section": "table", "heads_order": name} for name in ("layer", "role", "entropy")]),
    ("heads", ONCE, [{"heads_scope": "corpus", "heads_section": "table"}]),
    ("heads", ONCE, [{"heads_section": name} for name in ("card", "finder", "scatter")]),
    ("add_norm", EVERYWHERE, [{"add norm view": "statistics"}]),
    ("add_norm", ONCE, [{"add norm view": name} for name in ("arithmetic", "parameters", "stream", "updates")]),
    ("feed_forward", EVERYWHERE, [{"feed-forward view": "token"}]),
    ("feed_forward", ONCE, [{"feed-forward view": name} for name in ("strongest", "words", "sentence", "fires")]),
    ("decoding", EVERYWHERE, [{"decoding_section": "step"}]),
    ("decoding", ONCE, [{"strategy": "sampling", "seed": "3", "temperature": "1.3", "top_k": "20", "top_p": "0.9"}]),
    ("decoding", ONCE, [{"decoding_section": "strategies", "seed": "3", "beam_width": "3"}]),
    ("decoding", ONCE, [{"decoding_section": "tree", "beam_width": "3"}, {"decoding_section": "alignment"}]),
    ("masks", EVERYWHERE, [{"mask": ["own", "block 3-1", "block 3-2", "block 4-0"], "masks view": "difference"}]),
    ("masks", ONCE, [{"mask": ["word 2"], "masks view": name} for name in ("difference", "steps", "padding")]),
    ("masks", ONCE, [{"mask": [name], "masks view": "difference"} for name in ("window 3", "no_causal")]),
    ("surgery", ONCE, [{"surgery what": name} for name in ("p", "change", "kl")]),
    ("surgery", EVERYWHERE, [{"edit": ["zero:{stack}.{layer}.{kind}.{head}"], "edited_picture": "true"}]),
    ("surgery", ONCE, [{"edit": ["drop:{stack}.1.feed_forward", "mean:{stack}.0.self.1"]}]),
    ("lens", ONCE, [{"lens_view": "layers", "lens_colour": name} for name in ("probability", "rank", "divergence")]),
    ("lens", ONCE, [{"lens_view": "layers", "lens_rows": "sublayers", "lens_course": "true"}]),
    ("lens", ONCE, [{"lens_view": "author"}]),
    ("compare", EVERYWHERE, [{"second": "{other}", "shown_head": "chosen", "compare_more": "heads"}]),
    ("compare", ONCE, [{"second": "{other}", "shown_head": "chosen", "compare_more": "stream"}]),
    ("compare", ONCE, [{"compare_mode": "checkpoints", "other": "en-fr-sharp"}, {"compare_mode": "layers"}]),
    ("training", ONCE, [{"training section": "early"}, {"training section": "time", "training_step": "400"}]),
    ("training", ONCE, [{"training section": "step", "training optimizer": name} for name in ("adam", "sgd")]),
    ("checkpoint", ONCE, [{}]),
    ("by_hand", ONCE, [{}]),
)


def views(model: Model, text: str, other: str) -> Iterator[tuple[str, str, dict[str, str | list[str]]]]:
    """Yield page, name and address of every view of one input."""
    for page, where, options in VIEWS:
        if model.inputs is DIGITS and page not in OF_IMAGES:
            continue
        for place in model.places if where == EVERYWHERE else model.places[-1:]:
            at = dict(zip(("stack", "kind", "layer", "head", "token"), map(str, place), strict=True))
            for option in options:
                named = {key: _filled(value, {**at, "other": other}) for key, value in option.items()}
                words = [value if isinstance(value, str) else ",".join(value) for value in option.values()]
                name = " ".join([*place_name(place), *words]).format(**at, other="other")
                yield page, name, {"checkpoint": model.name, "sentence": text, **model.address, **at, **named}


def place_name(place: Place) -> tuple[str, str]:
    """Return how a place is called in keys."""
    return place[0] if place[1] == "self" else "cross", f"{place[2]}.{place[3]}"


def _filled(value: str | list[str], names: dict[str, str]) -> str | list[str]:
    return [one.format(**names) for one in value] if isinstance(value, list) else value.format(**names)
