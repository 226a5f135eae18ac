"""The handout: one file for every kind of model, with this sentence's numbers and nobody else's."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from functools import cache
from html import escape
from pathlib import Path

import numpy as np
import pytest

import transformer
from charts.documents.document_parts import Live
from charts.toolkit.payload_bytes import unpack
from tests.foreign_checkpoints import FOREIGN
from tests.kinds_of_text import SENDABLE, UNREADABLE
from tests.nights import FAMILIES_BY_DAY, by_day
from tests.shipped import SHIPPED
from transformer.__main__ import main
from transformer.attention_maps.attention_arithmetic import cell_arithmetic, why_masked
from ui.shell.focus import Focus
from ui.words.texts import page_text, pictures, use_language
from views.overview.handout import STEPS, check_length, handout
from views.overview.handout.writing import WIDTH, written

ROOT = Path(__file__).resolve().parents[2]
MAX_BYTES = 1_500_000
SENTENCE = {"bert-en": "The cat sat on the ___, and then it slept ___ night.", "vit-digits": pictures()[0][1]}
DOZEN = "The cat sat on the mat, and then it slept all night."
KINDS = ("translator", "gpt", "bert", "sentiment")
MARKUP = ("markup", "end of a script", "special tokens", "braces and percent", "line separator", "Arabic", "emoji")
READABLE = [name for name in SENDABLE if name not in UNREADABLE]


@cache
def shipped(name: str) -> transformer.Trace:
    return transformer.trace(transformer.load(ROOT / "checkpoints" / name), SENTENCE.get(name, DOZEN))


def figures(html: str) -> list[tuple[dict, dict[str, np.ndarray]]]:
    found = re.findall(r'<figure class="drawing"><script type="text/plain">([^<]*)</script>', html)
    return [unpack(base64.b64decode(payload)) for payload in found]


def lines_of(arrays: dict[str, np.ndarray]) -> list[list[list[str]]]:
    return json.loads(arrays["lines"].tobytes())


def titled(html: str, title: str) -> tuple[dict, dict[str, np.ndarray]]:
    return next(each for each in figures(html) if each[0]["title"].startswith(title))


def check(html: str, trace: transformer.Trace, focus: Focus) -> None:
    """Check for every model: size, no other host, all steps, and the numbers of the trace."""
    addresses = set(
        re.findall(r"(?:https?:)?//[\w.-]+\.\w+", re.sub(r'<script type="text/plain".*?</script>', "", html))
    )
    assert addresses <= {"http://www.w3.org"}, addresses  # a namespace of SVG, which is never fetched
    assert re.findall(r'<section id="(\w+)"', html) == [make.__name__ for make in STEPS]
    # all placeholders are filled in
    assert not re.search(r"\{[a-z]\w*\}", re.sub(r"(?s)<(script|style).*?</\1>", "", html))
    view = trace.attention(focus.stack, focus.layer, focus.kind)
    text = page_text("attention")
    for part in ("query", "key", "value"):
        _, arrays = titled(html, text[f"title_{part}"])
        recorded = trace.values(f"{view.name}.{part}")[focus.head][:, :WIDTH]
        np.testing.assert_array_equal(arrays["values"], recorded)
    # the arrays of the attention map alone
    weights = next(arrays for metadata, arrays in figures(html) if "legend" in metadata)
    np.testing.assert_allclose(weights["values"], np.where(view.allowed, view.weights[focus.head], 0))
    last = len(view.query) - 1
    for row, key in ((0, 0), (last, 0), (0, len(view.key) - 1)):
        cell = cell_arithmetic(trace, view.stack, view.layer, view.kind, head=focus.head, query=row, key=key)
        said = " ".join(lines_of(weights)[row][key])
        assert written(cell.dot_product) in said
        assert written(cell.score) in said
        assert not cell.is_allowed or (written(cell.weight) in said and written(cell.recorded) in said)
    _, norm = titled(html, page_text("add_norm")["after_output"])
    first = next(name for name in trace.names() if name.startswith(f"{focus.stack}.") and name.endswith("norm.output"))
    names = [name for name in trace.names() if name.endswith("norm.output") and name.count(".") == 4]
    own = [name for name in names if name.startswith(f"{focus.stack}.layers.{focus.layer}.")]
    np.testing.assert_array_equal(norm["values"], trace.values((own or [first])[0])[:, :WIDTH])
    assert written(trace.values((own or [first])[0])[0, 0]) in " ".join(lines_of(norm)[0][0])


@pytest.mark.slow
@pytest.mark.parametrize("language", by_day(("en", "fr"), ("en",)))
@pytest.mark.parametrize("name", by_day([path.name for path in SHIPPED], ("en-fr", "vit-digits")))
def test_every_shipped_model_has_a_handout(name: str, language: str) -> None:
    trace = shipped(name)
    stack = "decoder" if trace.source is None else "encoder"
    focus = Focus(checkpoint=name, stack=stack, layer=1, head=2, token=3)
    with use_language(language):
        html = handout(trace, focus)
        assert len(html.encode("utf-8")) < MAX_BYTES
        check(html, trace, focus)
    assert f'<html lang="{language}">' in html


@pytest.mark.slow
@pytest.mark.parametrize("name", by_day(FOREIGN, FAMILIES_BY_DAY))
def test_every_family_has_a_handout(family: Callable, name: str) -> None:
    trace = transformer.trace(family(name), "The cat sat on the mat.")
    focus = Focus(checkpoint=name, stack="decoder" if trace.source is None else "encoder")
    check(handout(trace, focus), trace, focus)


def test_cross_attention_and_a_given_answer() -> None:
    trace = transformer.trace(shipped("en-fr").checkpoint, "The cat sat.", "Le chien", source_pads=2)
    focus = Focus(checkpoint="en-fr", stack="decoder", kind="cross", layer=1, head=3)
    html = handout(trace, focus)
    check(html, trace, focus)
    assert page_text("overview")["forced"] in html
    assert page_text("attention")["step_1_cross"] in html
    given = next(metadata for metadata, _ in figures(html) if metadata["kind"] == "steps")["tokens"]
    assert [token["given"] for token in given[:2]] == [True, True]


@pytest.mark.parametrize("name", ["en-fr", "gpt-en"])
def test_the_steps_of_the_text_have_the_probabilities_of_the_model(name: str) -> None:
    trace = shipped(name)
    found = transformer.decode(trace.checkpoint, trace.sentence, record_steps=True)
    html = handout(trace, Focus(checkpoint=name))
    metadata, arrays = next(each for each in figures(html) if each[0]["kind"] == "steps")
    assert [token["text"] for token in metadata["tokens"]] == list(found.tokens.displays)
    for step, row, chosen in zip(found.steps, arrays["probabilities"], metadata["chosen"], strict=True):
        assert row[chosen] == np.float32(step.chosen.probability)
    logits = titled(html, page_text("overview")["handout"]["logits_title"])
    for step, row, said in zip(found.steps, logits[1]["values"], lines_of(logits[1]), strict=True):
        np.testing.assert_array_equal(row, [np.float32(each.logit) for each in step.candidates[: len(row)]])
        worked_out = float(
            said[0][1].rsplit("= ", 1)[1].replace("·10⁻", "e-").translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789"))
        )
        assert worked_out == pytest.approx(step.candidates[0].probability, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        pytest.param(kind, name, marks=() if name in MARKUP and kind == KINDS[place % 4] else pytest.mark.nightly)
        for place, name in enumerate(READABLE)
        for kind in KINDS
    ],
)
def test_what_was_typed_stays_text(tiny_checkpoint: Callable, kind: str, name: str) -> None:
    sentence = SENDABLE[name]
    html = handout(transformer.trace(tiny_checkpoint(kind), sentence), Focus(sentence=sentence))
    # Its scripts are those of its figures, their shared part, the one that draws them, and the diagram's.
    assert html.count("<script") == html.count("</script>") == html.count("<figure") + 4
    assert "<!--" not in html
    tags = set(re.findall(r"<(\w+)", re.sub(r"(?s)<(script|style).*?</\1>", "", html)))
    frame = {
        "html",
        "head",
        "meta",
        "title",
        "body",
        "header",
        "nav",
        "footer",
        "main",
        "section",
        "figure",
        "output",
        "fieldset",
    }
    words = {"h1", "h2", "p", "b", "i", "code", "a", "ul", "li", "bdi", "small", "div", "legend", "label", "input"}
    assert tags <= frame | words


@pytest.mark.parametrize("kind", ["gpt", "bert", "sentiment"])
def test_a_model_without_steps_says_so(tiny_checkpoint: Callable, kind: str) -> None:
    trace = transformer.trace(tiny_checkpoint(kind), "The cat ___.")
    html = handout(trace, Focus())
    text, drawn = page_text("overview")["handout"], {metadata["kind"] for metadata, _ in figures(html)}
    assert ("steps" in drawn) == (kind == "gpt")
    assert (text["no_steps"] in html) == (kind in ("bert", "sentiment"))
    assert (escape(text["nothing_added"]) in html) == (f"{trace.stacks[0]}.embedding.position" not in trace)


def test_a_model_that_was_asked_nothing_says_so(tiny_checkpoint: Callable) -> None:
    assert page_text("overview")["no_blank"] in handout(transformer.trace(tiny_checkpoint("bert"), "The cat."), Focus())


def test_the_command_writes_the_file_or_a_sentence(checkpoints_folder: Path, tmp_path: Path, capsys) -> None:
    folder, file = str(checkpoints_folder / "tiny-translator"), tmp_path / "handout.html"
    arguments = ["handout", "--checkpoint", folder, "--out", str(file)]
    assert main([*arguments, "The cat.", "--lang", "fr", "--target", "Le chat."]) == 0
    html = file.read_text(encoding="utf-8")
    assert '<html lang="fr">' in html
    assert "Vous avez écrit\u00a0: " in html
    assert f"{len(html.encode()):,} bytes" in capsys.readouterr().out
    file.unlink()
    for wrong, sentence in ((["  "], "The sentence is empty"), (["a", "--lang", "xx"], "there are no texts in 'xx'")):
        assert main([*arguments, *wrong]) == 2
        assert sentence in capsys.readouterr().err
    assert not file.exists()


def test_a_text_too_long_for_a_phone_is_refused(tiny_checkpoint: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("views.overview.handout.MAX_TOKENS", 5)
    trace = transformer.trace(tiny_checkpoint("sentiment"), "The cat sat on the mat.")
    with pytest.raises(transformer.InputError, match=f"has {len(trace.source)} tokens, and at most 5 are possible"):
        handout(trace, Focus())


def test_a_document_refuses_code_that_would_end_it() -> None:
    with pytest.raises(ValueError, match="the script of a document holds </script"):
        Live("t", "'</SCRIPT>'")


def test_why_a_cell_is_masked(tiny_checkpoint: Callable) -> None:
    trace = transformer.trace(tiny_checkpoint("translator"), "The cat.", "Le chat.", source_pads=1)
    encoder, decoder = trace.attention("encoder", 0), trace.attention("decoder", 0)
    rule = cell_arithmetic(trace, "encoder", 0, "self", head=0, query=0, key=0).rule
    assert why_masked(encoder, rule, query=0, key=len(encoder.key) - 1) == "padding"
    assert why_masked(decoder, rule, query=0, key=1) == "causal"
    assert why_masked(decoder, rule, query=1, key=0) == "other"


def test_a_picture_s_handout_says_nothing_of_sentences_and_rows_that_are_fetched() -> None:
    html = handout(shipped("vit-digits"), Focus(checkpoint="vit-digits"))
    for name in ("overview", "tokens", "embeddings"):
        usual, of_pictures = page_text(name), page_text(name).instead("of_pictures")
        assert escape(of_pictures.question) in html and escape(usual.question) not in html
        assert all(escape(sentence) not in html for sentence in usual.look_for if sentence not in of_pictures.look_for)
    assert "16 patches. Below each" in html and "rows for the tokens of this sentence" not in html


def test_learned_positions_have_no_waves_from_minus_one_to_one() -> None:
    html = handout(shipped("bert-en"), Focus(checkpoint="bert-en"))
    assert "whose values lie between −1 and 1" not in html and "which was learned as well" in html
    assert "whose values lie between −1 and 1" in handout(shipped("en-fr-2017"), Focus(checkpoint="en-fr-2017"))


def test_a_handout_of_too_many_heads_is_refused(tiny_checkpoint: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = transformer.trace(tiny_checkpoint("gpt"), "The cat.")
    weights = sum(trace.values(name).size for name in trace.names() if name.endswith("attention.weights"))
    monkeypatch.setattr("views.overview.handout.MAX_WEIGHTS", weights)
    check_length(trace)
    monkeypatch.setattr("views.overview.handout.MAX_WEIGHTS", weights - 1)
    with pytest.raises(transformer.InputError, match=f"{weights:,} weights, and at most {weights - 1:,} are possible"):
        check_length(trace)
