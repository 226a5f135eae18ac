"""What the lessons say about the shipped models holds; the lines below each step recompute it.

A step of ``lessons/en/*.toml`` ends with lines such as ``# true: answer == str(len(source))``; ``# where: x = …`` names
a value for those after it. They are Python with the names of ``names_of``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import transformer
from tests.conftest import ROOT
from transformer.attention_maps.attention_path import attention_path, output_matrices
from transformer.attribution.attention_trust import compare_with_attention, input_attributions
from transformer.attribution.direct_logit_attribution import attribute, strongest_sources
from transformer.faults.catalogue import diagnosis_of
from transformer.faults.fault_checks import CHECKS, checked_model
from transformer.faults.forward_faults import experiment_with_bug, padded
from transformer.files.model_card import starting_checkpoint
from transformer.guests.rotary_positions import plain_rotary
from transformer.heads.head_atlas import HeadHabits, head_habits
from transformer.heads.head_roles import head_roles
from transformer.heads.induction import LEAST_INDUCTION
from transformer.heads.role_files import load_corpus_roles
from transformer.interventions.activation_patching import contrast, head_places, recovered_shares, token_places
from transformer.interventions.direct_effects import is_removable, remove_parts
from transformer.interventions.experiment import answer_under
from transformer.interventions.head_importance import head_effect
from transformer.layers.embedding_space import nearest_rows
from transformer.layers.positional_encodings import angles_of, reordered_positions, without_positions
from transformer.layers.residual_stream import Part
from transformer.predictions.hypothesis_tree import beam_tree
from transformer.predictions.lens import logit_lens
from transformer.predictions.living_picture_numbers import living_picture_numbers
from transformer.predictions.target import quantity_of
from transformer.runs.head_places import Head
from transformer.runs.next_sentence import next_sentence
from transformer.text.sentence_files import read_sentences
from transformer.toy.toy_training import train_toy
from ui.shell.fitting import fit_model, fit_trace
from ui.shell.focus import Focus
from ui.shell.guidance.lesson_bar import nearest_word
from ui.shell.guidance.lessons import LESSONS, PLACE, Step, find_course
from ui.shell.navigation import page_names
from views.lens.lens_sections import MOST_REMOVED

LINE = re.compile(r"^# (true|where): (.+)", re.MULTILINE)
LIBRARY = {  # what lines may use beside the names of their step
    **{one.__name__: one for one in (transformer.decode, transformer.Sample, transformer.Beam, Part, Head)},
    **{one.__name__: one for one in (attention_path, output_matrices, compare_with_attention, input_attributions)},
    **{one.__name__: one for one in (attribute, strongest_sources, diagnosis_of, checked_model, experiment_with_bug)},
    **{one.__name__: one for one in (padded, starting_checkpoint, plain_rotary, head_roles, contrast, head_places)},
    **{one.__name__: one for one in (recovered_shares, token_places, is_removable, remove_parts, head_effect)},
    **{one.__name__: one for one in (nearest_rows, angles_of, beam_tree, logit_lens, living_picture_numbers)},
    **{one.__name__: one for one in (quantity_of, next_sentence, train_toy, transformer.trace_of)},
    **{"np": np, "pd": pd, "approx": pytest.approx},
    **{"CHECKS": CHECKS, "LEAST_INDUCTION": LEAST_INDUCTION, "MOST_REMOVED": MOST_REMOVED},
}
load = cache(lambda name: transformer.load(ROOT / "checkpoints" / name))


@cache
def traced(name: str, sentence: str, target: str | None = None, pads: int = 0) -> transformer.Trace:
    return transformer.trace(load(name), sentence, target, source_pads=pads)


@cache
def habits_of(name: str) -> Mapping[Head, HeadHabits]:
    return head_habits(load(name), read_sentences())


def names_of(step: Step, french: Step) -> dict[str, Any]:
    """Return the names that the lines of a step may use.

    These are the fields of the step; the place in focus (``stack``, ``layer``, …); its ``trace``, with the token
    sequences ``source``, ``target`` and ``prediction`` and the map ``view`` of the focus; and these functions.
    """
    place = {"stack": "encoder", "kind": "self", "layer": 0, "head": 0, "token": 0, "target": None, "pads": 0}
    place |= step.focus
    checkpoint, sentence = load(place["checkpoint"]), place["sentence"]
    trace = traced(checkpoint.name, sentence, place["target"], place["pads"])
    embedding = getattr(checkpoint.model, place["stack"]).embedding

    def says(english: str, value: float | None = None) -> bool:
        """Whether the step names this in both languages, and whether ``value`` is that number, rounded."""
        said = {"en": english, "fr": english}
        if re.fullmatch(r"[\d,.]+%?", english):
            said["fr"] = english.replace(",", "\u202f").replace(".", ",").replace("%", "\u202f%")
        for one, language in ((step, "en"), (french, "fr")):
            words = " ".join((one.do, one.notice, one.question, *one.choices, one.explanation))
            assert re.search(rf"(?<!\d){re.escape(said[language])}(?!\d)", words), f"{said[language]!r} is not said"
        digits = english.rstrip("%").replace(",", "")
        found = value if value is None or not english.endswith("%") else 100 * value
        return found is None or found == pytest.approx(float(digits), abs=0.5 * 10.0 ** -len(digits.partition(".")[2]))

    def under(*edits: str, sentence: str = sentence, target: str | None = None) -> transformer.Trace:
        return transformer.trace(checkpoint, sentence, target, edits=transformer.edits_from(checkpoint, edits))

    def probabilities(trace: transformer.Trace, row: int) -> dict[str, float]:
        """Return the probability of every token after that of ``row``, the largest first."""
        logits = trace.values("decoder.logits")[row].astype(np.float64)
        powers = np.exp(logits - logits.max())
        order = map(int, np.argsort(-powers))
        return {checkpoint.tokenizer.display(id): float(powers[id] / powers.sum()) for id in order}

    def changed(edits: Callable[..., Any], *arguments: object) -> transformer.Trace:
        return transformer.trace(checkpoint, sentence, edits=edits(checkpoint.model, "encoder", *arguments))

    return {
        **LIBRARY,
        **vars(step),
        **place,
        "french": french,
        "checkpoint": checkpoint,
        "config": checkpoint.config,
        "tokenizer": checkpoint.tokenizer,
        "trace": trace,
        "source": trace.source,
        "target": trace.target,
        "prediction": trace.prediction,
        "values": trace.values,
        "attention": trace.attention,
        "view": trace.attention(place["stack"], place["layer"], place["kind"]),
        "E": embedding.table.weight.detach().numpy() if hasattr(embedding, "table") else None,
        "says": says,
        "probabilities": probabilities,
        "of": lambda other: traced(checkpoint.name, other),
        "under": under,
        "text": lambda *edits: answer_under(checkpoint, sentence, transformer.edits_from(checkpoint, edits)).text,
        "reordered": lambda order: changed(reordered_positions, order),
        "without_order": lambda: changed(without_positions),
        "factor": lambda stack, layer, kind, head: head_effect(trace, stack, layer, kind, head=head).factor,
        "roles": lambda: load_corpus_roles(checkpoint),
        "habits": lambda: habits_of(checkpoint.name),
    }


def cases() -> list[object]:
    """Return every step, with its lines."""
    return [
        pytest.param(path.stem, number, LINE.findall(part), id=f"{path.stem} {number}")
        for path in sorted((LESSONS / "en").glob("*.toml"))
        for number, part in enumerate(path.read_text(encoding="utf-8").split("[[step]]")[1:], 1)
    ]


@pytest.mark.slow
@pytest.mark.sample(of=15)
@pytest.mark.parametrize(("name", "number", "lines"), cases())
def test_a_step_is_at_a_place_of_its_model_and_is_true(name: str, number: int, lines: list[tuple[str, str]]) -> None:
    step, french = (find_course(name, language).steps[number - 1] for language in ("en", "fr"))
    names = names_of(step, french)
    focus = step.focused(Focus(), default=Focus(checkpoint="en-fr"))
    assert step.page in page_names() and set(step.focus) <= set(PLACE)
    assert fit_model(focus, names["config"]) == (focus, ()), "its place is one of the model"
    assert "token" not in step.focus or fit_trace(focus, names["trace"]) == (focus, ())
    for kind, line in lines:
        if kind == "where":
            exec(line, names)
        else:
            assert eval(line, names), line


def test_most_steps_are_recomputed_and_a_number_is_the_same_answer_in_both_languages() -> None:
    counts = [sum(kind == "true" for kind, _ in case.values[2]) for case in cases()]
    assert sum(count > 0 for count in counts) > 60 and sum(counts) > 130
    for path in (LESSONS / "en").glob("*.toml"):
        for step, french in zip(find_course(path.stem).steps, find_course(path.stem, "fr").steps, strict=True):
            if re.fullmatch(r"[\d.,]+", step.answer):
                assert re.sub(r"\D", "", step.answer) == re.sub(r"\D", "", french.answer)


@pytest.mark.usefixtures("shipped_folder")
def test_tasks_for_any_sentence_name_none_of_its_words_and_hold_for_others() -> None:
    """With the reader's own sentence, the lines of the heads still do not all lead to one token."""
    for language in ("en", "fr"):
        steps = find_course("00-the-way-of-a-sentence", language).steps
        assert [number for number, one in enumerate(steps, 1) if one.any_sentence] == [1, 2, 3, 5, 6]
        for one in steps:
            feedback = [text for _option, text in one.wrong]
            texts = " ".join((one.do, one.notice, one.question, *one.choices, one.explanation, one.hint, *feedback))
            names_a_token = re.search(r"·\S", texts) is not None  # "· W₂" is a product
            assert one.any_sentence != names_a_token, (language, one.title)
    token = find_course("00-the-way-of-a-sentence").steps[1].focus["token"]
    for typed, named in (
        ("My grandmother bakes apple pie every Sunday.", "·apple"),  # from "other" on, the first word in one piece
        ("I am here.", "·here"),
        ("Where do you live?", "·live"),
        ("Tom loves Mary.", "·Mary"),
    ):
        word, trace = nearest_word("en-fr", typed, token=token), traced("en-fr", typed)
        assert trace.source[word].display == named
        weights = trace.attention("encoder", 0).weights[:, word]
        assert len(set(weights.argmax(axis=-1).tolist())) > 1, typed
