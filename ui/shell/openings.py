"""The opening and the examples of a checkpoint: its own (``opening.toml``), or those of its kind."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from transformer.config import LEVELS, ModelConfig
from transformer.files.opening_file import PLACE, Example, Opening, in_language, read_opening
from transformer.pictures.drawn_images import DRAWN
from transformer.pictures.image_files import PREFIX
from ui.compute.loading import checkpoint_names, checkpoint_path, readable_config
from ui.words.once_a_run import once_a_run
from ui.words.texts import ROOT, common, language, model_sentences, pictures
from ui.words.translations import read_texts

_LOG = logging.getLogger(__name__)


def opening_of(checkpoint: str) -> Opening:
    """Return a checkpoint's own opening, or that of its kind if it has none that can be read (logged)."""
    return _own(checkpoint) or _of_kind(readable_config(checkpoint))


def examples_of(checkpoint: str) -> tuple[Example, ...]:
    """Return example sentences for this checkpoint, the opening first."""
    return opening_of(checkpoint).examples


def has_place(checkpoint: str, sentence: str) -> bool:
    """Return whether an example with this sentence says at which head it opens."""
    return any(
        example.sentence == sentence and example.place.keys() == set(PLACE) for example in examples_of(checkpoint)
    )


def label_of(example: Example) -> str:
    """Return the label of an example in the current language."""
    return in_language(example.label, language())


def shows_of(example: Example) -> str:
    """Return what an example shows, in the language of this run."""
    return in_language(example.shows, language())


def name_in_list(checkpoint: str) -> str:
    """Return a checkpoint's task, "Fills in blanks", or its name if it does not say its task."""
    own = _own(checkpoint)
    return checkpoint if own is None else in_language(own.name, language())


def trained_on(checkpoint: str) -> str:
    """Return the sentence on what a checkpoint was trained on; "" if its opening has none."""
    own = _own(checkpoint)
    return in_language(own.trained_on, language()) if own is not None and own.trained_on else ""


def is_ready(sentence: str, tasks: Sequence[str]) -> bool:
    """Return whether a sentence is one of the app's own, with or without one of ``tasks``."""
    return bool({sentence, sentence.removeprefix(start_of(sentence, tasks))} & _ready(checkpoint_names()))


def start_of(sentence: str, starts: Sequence[str]) -> str:
    """Return the task prefix that a sentence begins with, or ""."""
    return next((start for start in starts if sentence.startswith(start)), "")


def _ready(names: Sequence[str]) -> frozenset[str]:
    own = {example.sentence for name in names if (opening := _own(name)) for example in opening.examples}
    return frozenset(own) | _ready_for_all()


@lru_cache(maxsize=1)
def _ready_for_all() -> frozenset[str]:
    shipped = model_sentences()
    tables = (shipped[table].values() for table in ("example", "task_example"))
    pairs = (pair.values() for pair in shipped["pair"].values())
    found = {sentence for sentences in (*tables, *pairs) for sentence in sentences}
    drawn = {f"{PREFIX}{name}" for name in DRAWN}
    return frozenset(found | drawn | {text for _, text in pictures()} | {shipped["default"], shipped["patch"]})


@once_a_run
def _own(checkpoint: str) -> Opening | None:
    return _read(checkpoint_path(checkpoint))


@lru_cache(maxsize=64)
def _read(folder: Path) -> Opening | None:
    try:
        return read_opening(folder)
    except (ValueError, OSError) as error:
        _LOG.warning("%s; opening as models of its kind do", error)
        return None


def _of_kind(config: ModelConfig | None) -> Opening:
    """Return examples for this kind of model, at its first head, since its heads are unknown."""
    if config is not None and config.reads_images and not config.is_guest:
        size = config.picture_size**2
        label, text = next((each for each in pictures() if len(each[1]) == size), ("0", LEVELS[0] * size))
        found = [_example(text, label, label)]
    elif config is not None and config.reads_images:
        names = {name: common(f"image.{name}") for name in DRAWN}
        found = [_example(f"{PREFIX}{drawn}", name, name) for drawn, name in names.items()]
    else:
        kind = "encoder-decoder" if config is None else "classifier" if config.n_classes else config.kind
        texts, of_kinds = read_texts(ROOT, "examples", language()), model_sentences()["first_example"]
        found = [
            _example(sentence, **texts[name])
            for name, sentence in model_sentences()["example"].items()
            if name not in of_kinds.values() or name == of_kinds.get(kind)
        ]
        found.sort(key=lambda example: example.sentence != model_sentences()["example"].get(of_kinds.get(kind)))
    first = replace(found[0], place=dict(zip(PLACE, ("encoder", "self", 0, 0, 0), strict=True)))
    return Opening(name={"en": ""}, examples=(first, *found[1:]))


def _example(sentence: str, label: str, shows: str) -> Example:
    """Return an example with texts in the current language, which count for every language."""
    return Example(sentence=sentence, label={"en": label}, shows={"en": shows})
