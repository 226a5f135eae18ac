"""The readers: everything in this folder that depends on how the program is laid out.

Whoever changes where a figure's numbers travel, or where a function lives, adapts one reader here, and never a value:

- ``open_view``, ``full_address``: a page opened by its address, and all that its controls say then
- ``openings``: where a recorded view is now, if it has moved or been divided
- ``values_of_page``: what reaches the browser, by figure and array; one function per kind of element
- ``fold``: how an array is kept if its packing is not what it means (bits of a mask, fractions as whole numbers)
- ``RENAMED``: today's key of an array whose key has changed
- ``QUESTIONS``: the numbers that the library returns, by what they mean
"""

from __future__ import annotations

import base64
import contextlib
import html
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
GUESTS = Path(__file__).parent / "guests"
os.environ |= dict.fromkeys(("HF_HUB_CACHE", "OLLAMA_MODELS", "LM_STUDIO_MODELS"), "/nowhere")
os.environ["GLASSFORMER_CHECKPOINTS"] = os.pathsep.join((str(ROOT / "checkpoints"), str(GUESTS)))
os.environ["OMP_NUM_THREADS"] = "1"
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.golden.store import Value, value_of  # noqa: E402 - the path is set above

# (pattern of the key as the program gives it now, the key under which it was recorded), for ``re.sub``.
RENAMED = ((r"/ padding / change in log p$", "/ padding / change in log p(output)"),)

# --- Pages ----------------------------------------------------------------------------------------------------------

# Figures that are not recorded: they measure time, or it is decided that they go.
LEFT_OUT = re.compile(
    "parameters-and-time|word2vec|attention composition|agreement-by-distance|training map"
    "|(roles|jobs)-through-training"
)
WITHOUT_NUMBERS = ("sentence box", "canvas script", "frame", "typing", "model diagram")  # components of the frame
NO_PART_OF_A_VIEW = ("language", "presenter", "lesson", "lesson_step", "came_from")
NUMBERS_OF_TRACES = ("x", "y", "z", "base", "customdata", "r", "theta", "values", "error_x", "error_y")


def open_view(page: str, address: Mapping[str, Any]) -> Any:
    """Return the page as this address opens it, run once."""
    from streamlit.components.v2 import manifest_scanner
    from streamlit.testing.v1 import AppTest

    scan = manifest_scanner.scan_component_manifests
    if not hasattr(scan, "cache_info"):  # the metadata of all installed packages, which every run would read again
        manifest_scanner.scan_component_manifests = cache(scan)
    logging.getLogger("streamlit.runtime.scriptrunner_utils.script_run_context").disabled = True
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=600)
    if page != "overview":
        app.switch_page(f"pages/{page}.py")
    for name, value in address.items():
        app.query_params[name] = value
    return app.run()


def openings(page: str, address: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the pages and addresses on which today's program shows what a recorded view showed."""
    yield page, dict(address)
    if page == "compare" and "compare_more" in address:  # the maps, which stood above each of its parts
        yield page, {**address, "compare_more": "maps"}
    if page == "checkpoint":  # its tabs, which were all drawn
        for section in ("weights", "settings"):
            yield page, {**address, "checkpoint view": section}


def full_address(app: Any, page: str) -> dict[str, str | list[str]]:
    """Return an address that fixes the view: the focus, and every control that is drawn."""
    from ui.shell import choice, page_state

    focus = asdict(app.session_state["focus"])
    address: dict[str, Any] = {name: str(value) for name, value in focus.items() if name not in NO_PART_OF_A_VIEW}
    address = {name: value for name, value in address.items() if value and value != "-1"}
    keys = {key for where, key in choice.drawn if where == page}
    named = {key: page_state.texts_of(app.session_state[key]) for key in keys if key in app.session_state}
    named |= app.session_state[page_state._CHOICES][page].set
    return address | {key: list(texts) for key, texts in named.items() if texts}


def values_of_page(app: Any) -> dict[str, Value]:
    """Return what reaches the browser, by figure and array.

    Raises:
        AssertionError: If the page has failed.
    """
    assert not app.exception, app.exception[0].message
    found: dict[str, Value] = {}
    for figure, element in _elements(app._tree, ""):
        for name, value in READERS.get(element.type, lambda key, element: iter(()))(figure, element):
            key = f"{figure} / {name}"
            if LEFT_OUT.search(key):
                continue
            while key in found:
                key += " (again)"
            found[key] = value
    return found


def _elements(block: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield every element that is no block, with its key, or that of the container around it."""
    for child in block.children.values():
        key = getattr(child, "key", None) or ""
        if hasattr(child, "children"):
            yield from _elements(child, key or name)
        else:
            yield re.sub(r"^(chart|data|figure|table) ", "", key or name), child


def _component(figure: str, element: Any) -> Iterator[tuple[str, Value]]:
    """Read a drawing of the canvas, or tokens that are shown as chips."""
    from charts.toolkit.payload_bytes import unpack

    if figure in WITHOUT_NUMBERS:
        return
    if element.proto.bytes[:4] == b"GLAS":
        metadata, arrays = unpack(element.proto.bytes)
        for name, array in arrays.items():
            yield name, fold(name, in_steps(name, array, metadata), metadata)
        yield from _texts_and_counts(metadata)
    elif element.proto.json:
        yield from _chips(json.loads(element.proto.json))


def in_steps(name: str, array: np.ndarray, metadata: Mapping[str, Any]) -> np.ndarray:
    """Return the weights of all heads in the steps of a byte in which they were recorded."""
    if not name.startswith("weights") or array.dtype.kind != "f":
        return array
    tiles = metadata["parts"][int(name.removeprefix("weights"))]["tiles"] if "parts" in metadata else metadata["tiles"]
    limits = np.array([tile.get("limit", 1.0) for tile in tiles])[:, None, None]
    return np.rint(np.clip(array / limits, 0, 1) * 255).astype(np.uint8)


def fold(name: str, array: np.ndarray, metadata: Mapping[str, Any]) -> Value:
    """Return what is kept of an array of the canvas."""
    if name.split(".")[-1] in ("allowed", "own", "masks"):
        return value_of(np.unpackbits(array, bitorder="little"), "exact")
    return value_of(array, "float" if array.dtype.kind == "f" else "exact" if name.endswith("units") else "step")


def _texts_and_counts(metadata: Mapping[str, Any]) -> Iterator[tuple[str, Value]]:
    for name in ("rows", "columns"):
        yield from _labels(name, metadata.get(name))
    for name in ("ranks", "chosen", "counts"):
        if isinstance(numbers := metadata.get(name), list):
            yield name, value_of([-1 if number is None else number for number in numbers], "exact")
    if tiles := metadata.get("tiles"):
        yield "tiles", value_of([[tile["layer"], tile["head"]] for tile in tiles], "exact")
    yield from _labels("tokens", [token["text"] for token in metadata.get("tokens", ())])
    yield from _labels("candidates", [word for row in metadata.get("candidates", ()) for word in row])
    yield from _labels("written", [word for step in metadata.get("written", ()) for word in step["names"]])
    for stack in metadata.get("stacks", ()):
        yield from _labels(f"{stack['name']}.tokens", [token["text"] for token in stack["tokens"]])
    if metadata.get("kind") == "living_picture":
        yield "text", value_of([metadata["text"]], "text")


def _chips(shown: Any) -> Iterator[tuple[str, Value]]:
    if not isinstance(shown, dict):
        return
    for number, row in enumerate(shown.get("rows", ())):
        chips = row.get("tokens") or row.get("chips") or ()
        yield from _labels(f"{number}.tokens", [chip["text"] for chip in chips])
        ids = [chip.get("id", _number_in(chip.get("title", ""))) for chip in chips]
        for name, kind, numbers in (("id", "exact", ids), ("share", "float", [chip.get("share") for chip in chips])):
            if any(number is not None for number in numbers):
                yield f"{number}.{name}", value_of([np.nan if one is None else one for one in numbers], kind)
    for name, numbers in shown.get("parameters", {}).items():  # By hand
        yield name, value_of(np.array(numbers, dtype=float))


def _number_in(title: str) -> int | None:
    """Return the id in "token 3, id 17", as the strip of tokens says it."""
    found = re.search(r", id (\d+)$", title)
    return int(found[1]) if found else None


def _plotly(figure: str, element: Any) -> Iterator[tuple[str, Value]]:
    if figure.endswith(" narrow"):  # a part of the figure, for phones
        return
    spec = json.loads(element.proto.spec)
    for number, trace in enumerate(spec["data"]):
        for name in NUMBERS_OF_TRACES:
            yield from _numbers(f"{number}.{name}", trace.get(name))
        if isinstance(words := trace.get("text"), list) and not any(isinstance(word, list) for word in words):
            yield from _labels(f"{number}.text", words)
        yield from _numbers(f"{number}.colour", trace.get("marker", {}).get("color"))
    for name, axis in spec.get("layout", {}).items():
        if "axis" in name:
            yield from _labels(name, axis.get("ticktext"))


def _numbers(name: str, found: Any) -> Iterator[tuple[str, Value]]:
    """Read an array of Plotly: numbers, rows of numbers and texts, or labels."""
    if isinstance(found, dict) and "bdata" in found:
        array = np.frombuffer(base64.b64decode(found["bdata"]), np.dtype(found["dtype"]))
        shape = [int(size) for size in found["shape"].split(",")] if "shape" in found else [-1]
        yield name, value_of(array.reshape(shape))
    elif isinstance(found, dict):
        yield from _numbers(name, found.get("array"))
    elif isinstance(found, list) and found and isinstance(found[0], list):
        if len({len(row) for row in found}) == 1:
            for place, column in enumerate(zip(*found, strict=True)):
                yield from _numbers(f"{name}.{place}", list(column))
    elif isinstance(found, list) and all(isinstance(one, (int, float, type(None))) for one in found):
        if any(one is not None for one in found):
            yield name, value_of(np.array([np.nan if one is None else one for one in found], dtype=float))
    elif isinstance(found, list):
        yield from _labels(name, found)


def _table(_: str, element: Any) -> Iterator[tuple[str, Value]]:
    table = element.value
    for column in table:
        if table[column].dtype.kind in "fiub":
            kind = "float" if table[column].dtype.kind == "f" else "exact"
            yield str(column), value_of(table[column].to_numpy(), kind)
        else:
            yield from _labels(str(column), table[column].tolist())


def _vega(_: str, element: Any) -> Iterator[tuple[str, Value]]:
    import pyarrow

    for number, one in enumerate(element.proto.datasets):
        table = pyarrow.ipc.open_stream(one.data.data).read_all().to_pandas()
        for column in table.select_dtypes("number"):
            yield f"{number}.{column}", value_of(table[column].to_numpy(dtype=float))


def _labels(name: str, found: Any) -> Iterator[tuple[str, Value]]:
    """Yield labels if they are tokens; other texts may change."""
    texts = ["" if one is None else html.unescape(str(one)) for one in found or ()]
    if any(re.match(r"·\S|<[^<>]+>$|\[[A-Z]+\]", one) for one in texts) and "<br>" not in "".join(texts):
        yield name, value_of(texts, "text")


READERS: dict[str, Callable[[str, Any], Iterator[tuple[str, Value]]]] = {
    "bidi_component": _component,
    "plotly_chart": _plotly,
    "dataframe": _table,
    "table": _table,
    "vega_lite_chart": _vega,
    "arrow_vega_lite_chart": _vega,
}

# --- The library ----------------------------------------------------------------------------------------------------


@cache
def opened(model: str) -> Any:
    """Return the checkpoint of that name."""
    import torch

    import transformer

    torch.set_num_threads(1)
    folder = GUESTS / model if (GUESTS / model).is_dir() else ROOT / "checkpoints" / model
    return transformer.load(folder)


def about(model: str) -> dict[str, str]:
    """Return the digest of weights, config and tokenizer."""
    return {"fingerprint": opened(model).fingerprint}


@cache
def traced(model: str, sentence: str) -> Any:
    """Return one run over the sentence, recorded whole."""
    import transformer

    return transformer.trace(opened(model), sentence)


def values_of_question(question: str, model: str, sentence: str, other: str) -> dict[str, Value]:
    """Return the library's numbers for one of ``QUESTIONS``; none if it does not fit model or sentence.

    ``other`` is the sentence with which this one is compared.
    """
    found = {}
    with contextlib.suppress(ValueError):  # what the library raises, with a sentence, where it has no answer
        for name, value in QUESTIONS[question](traced(model, sentence), other):
            found[name] = value
    return found


Answers = Iterator[tuple[str, Value]]


def _attention_layers(trace: Any) -> Iterator[tuple[str, Any]]:
    from transformer.runs.head_places import attention_layers

    for stack, kind, layer in attention_layers(trace.checkpoint.config):
        yield f"{stack}.{layer}.{kind}", trace.attention(stack, layer, kind)


def _output(trace: Any, _: str) -> Answers:
    from transformer.predictions.answer_probabilities import class_probabilities, prediction_rows, read_answer

    answer = read_answer(trace)
    yield "text", value_of([answer.text], "text")
    yield "probabilities", value_of([part.probability for part in answer.parts])
    yield "tokens", value_of([part.display for part in answer.parts], "text")
    for stack in trace.stacks:
        yield f"{stack}.ids", value_of(trace.tokens(stack).ids, "exact")
        yield f"{stack}.tokens", value_of(trace.tokens(stack).labels, "text")
    if trace.checkpoint.config.n_classes:
        yield "classes", value_of([part.probability for part in class_probabilities(trace)])
    asked = prediction_rows(trace)
    yield "rows", value_of(asked.rows, "exact")
    if not asked.predicts_nothing:
        yield "log probabilities", value_of(asked.log_probabilities(trace))


def _activations(trace: Any, _: str) -> Answers:
    for name in trace.activations:
        array = trace.values(name)
        yield name, value_of(array, "exact" if array.dtype == bool else "float")


def _searches(trace: Any, _: str) -> Answers:
    import transformer

    checkpoint = trace.checkpoint
    if not checkpoint.config.has_decoder:
        return
    strategies = {
        "greedy": transformer.Greedy(max_new_tokens=20),
        "sample": transformer.Sample(temperature=1.2, top_k=30, top_p=0.9, seed=5, max_new_tokens=20),
        "beam": transformer.Beam(width=3, max_new_tokens=20),
    }
    for name, strategy in strategies.items():
        found = transformer.decode(checkpoint, trace.sentence, strategy)
        yield f"{name}.text", value_of([found.text], "text")
        yield f"{name}.ids", value_of(found.tokens.ids, "exact")
        yield f"{name}.log probability", value_of([found.log_probability])
        yield f"{name}.chosen", value_of([step.chosen.probability for step in found.steps])
        yield f"{name}.chances", value_of([one.chance for step in found.steps for one in step.candidates[:3]])
        if found.hypotheses:
            yield f"{name}.hypotheses", value_of([one.text for one in found.hypotheses], "text")
            yield f"{name}.scores", value_of([[one.score, one.log_probability] for one in found.hypotheses])


def _roles(trace: Any, _: str) -> Answers:
    from transformer.heads.head_roles import sentence_roles

    for name, view in _attention_layers(trace):
        roles = sentence_roles(view)
        yield f"{name}.roles", value_of([one.role for one in roles], "text")
        for score in roles[0].scores:
            yield f"{name}.{score}", value_of([one.scores.get(score, np.nan) for one in roles])


def _importance(trace: Any, _: str) -> Answers:
    from transformer.interventions.head_importance import head_importance

    found = head_importance(trace).measured
    yield "change", value_of([one.change for one in found])
    yield "kl", value_of([one.kl for one in found])


def _patching(trace: Any, other: str) -> Answers:
    from transformer.interventions.activation_patching import contrast, head_places, recovered_shares, token_places

    pair = contrast(trace, other)
    turn = max(pair.turns, key=lambda turn: turn.clean - turn.corrupt)
    yield "turn", value_of([turn.row, turn.answer, turn.other], "exact")
    yield "differences", value_of([turn.clean, turn.corrupt])
    for stack in trace.stacks:
        for name, places in (("tokens", token_places(pair, turn, stack)), ("heads", head_places(pair, stack))):
            yield f"{stack}.{name}", value_of(recovered_shares(pair, turn, places))


def _asked(trace: Any) -> int:
    """Return the row that is asked about: that of the third predicted token."""
    from transformer.predictions.answer_probabilities import prediction_rows

    rows = prediction_rows(trace).rows
    return rows[min(2, len(rows) - 1)]


def _direct(trace: Any, _: str) -> Answers:
    from transformer.attribution.direct_logit_attribution import attribute, shares_of_keys

    found = attribute(trace, None if trace.checkpoint.config.n_classes else _asked(trace))
    yield "parts", value_of(found.values)
    yield "logit", value_of([found.logit, found.total])
    yield "keys", value_of(shares_of_keys(trace, found, kind="self_attention", layer=0))


def _inputs(trace: Any, _: str) -> Answers:
    from transformer.attribution.input_attribution import gradient_times_input, integrated_gradients
    from transformer.attribution.leave_one_out import leave_one_out, remove_each
    from transformer.predictions.target import quantity_of

    checkpoint = trace.checkpoint
    quantity = quantity_of(trace, row=_asked(trace))
    ways = {
        "gradient times input": gradient_times_input(checkpoint, quantity),
        "integrated gradients": integrated_gradients(checkpoint, quantity, n_steps=16),
        "leave one out": remove_each(checkpoint, quantity),
    }
    for name, found in ways.items():
        yield f"{name}.value", value_of([found.value])
        for side in ("source", "target"):
            if (array := getattr(found, side)) is not None:
                yield f"{name}.{side}", value_of(array)
    if checkpoint.config.n_classes and " " in trace.sentence:  # no image
        yield "leave one word out", value_of(leave_one_out(checkpoint, trace.sentence).without)


def _lens(trace: Any, _: str) -> Answers:
    from transformer.predictions.lens import logit_lens

    found = logit_lens(trace, sublayers=True)
    for name in ("ids", "rank", "decided"):
        yield name, value_of(getattr(found, name), "exact")
    for name in ("probabilities", "probability", "divergence", "entropy"):
        if getattr(found, name) is not None:
            yield name, value_of(getattr(found, name))


def _strokes(trace: Any, _: str) -> Answers:
    """Paint three strokes, one after the other, on the first layer's map of the last stack."""
    from transformer.interventions.experiment import experiment
    from transformer.runs.mask_edits import mask_edit, mask_under

    stack = trace.stacks[-1]
    view = trace.attention(stack, 0, "self")
    strokes = ("block 3-1,3-2", "allow 2-4,2-5", "block 4-0")
    edits = []
    for number, stroke in enumerate(strokes):
        edits.append(mask_edit(stack, layer=0, mask=stroke))
        yield f"mask {number}", value_of(mask_under(edits, view), "exact")
    found = experiment(trace, edits)
    yield "kl", value_of(found.kl)
    yield "change", value_of([found.change])
    yield "weights", value_of(found.changed.attention(stack, 0, "self").weights)


def _cells(trace: Any, _: str) -> Answers:
    """The seven steps of three cells: q and k, score, scaled, masked, softmax, weighted values, projected."""
    from transformer.attention_maps.attention_path import attention_path

    for name, view in _attention_layers(trace):
        for head, row, column in ((0, 1, 0), (1, 3, 2), (0, 4, 4)):
            if row >= len(view.query) or column >= len(view.key):
                continue
            path = attention_path(trace, view.stack, view.layer, view.kind, head=head)
            cell = path.cell(query=row, key=column)
            yield f"{name}.{head}.{row}-{column}.query and key", value_of([cell.query, cell.key])
            yield f"{name}.{head}.{row}-{column}.scores", value_of(cell.scores)
            yield f"{name}.{head}.{row}-{column}.allowed", value_of(cell.allowed, "exact")
            scaled = cell.dot_product * cell.rule.scale + (cell.bias or 0.0)
            steps = [cell.dot_product, scaled, cell.score, cell.largest, cell.power, cell.denominator, cell.weight]
            yield f"{name}.{head}.{row}-{column}.steps", value_of(steps)
            yield f"{name}.{head}.{row}-{column}.weights", value_of(cell.weights)


QUESTIONS: dict[str, Callable[[Any, str], Answers]] = {
    "output": _output,
    "activations": _activations,
    "searches": _searches,
    "roles": _roles,
    "importance": _importance,
    "patching": _patching,
    "direct attribution": _direct,
    "attribution to the input": _inputs,
    "lens": _lens,
    "painted strokes": _strokes,
    "cells": _cells,
}
