"""The page Decoding: generation, blanks and classes; its numbers are those of the model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

import transformer
from charts.toolkit.payload_bytes import unpack
from charts.toolkit.style import signed, three_digits
from tests.conftest import ROOT
from tests.pages.conftest import choose_text, chosen_texts, codes, is_fine
from tests.pages.conftest import said as said_on_page
from transformer.attribution.leave_one_out import leave_one_out
from transformer.predictions.answer_probabilities import blanks, fillings
from transformer.predictions.decoding_steps import step_attention
from transformer.predictions.hypothesis_tree import beam_tree
from transformer.predictions.word_alignment import align
from transformer.predictions.written_text import is_choice_of_words
from ui.words.texts import common, page_text

TEXT = page_text("decoding")
WRITERS = ("tiny-translator", "tiny-gpt")
SENTENCE = "The old man told us a story."


def go(app, step):
    """Call the page as the figure's callback does."""
    choose_text(app, "step", step)
    return app.run()


def drawn(app) -> tuple[dict, dict[str, np.ndarray]] | None:
    """Return the payload of the figure of all steps, if there is one."""
    mounted = [component for component in app.get("bidi_component") if component.key == "stepper"]
    return unpack(mounted[0].proto.bytes) if mounted else None


def sentence_about_the_step(app) -> str:
    """Return the text as the browser shows it at the session's step, with ** around emphasised parts."""
    metadata, pieces = drawn(app)[0], drawn(app)[0]["said"]
    step = int("".join(chosen_texts(app, "step")) or metadata["begin"][1])
    return "**".join(pieces[min(step, len(pieces) - 1)])


def python_of(app) -> str:
    """Return the page's Python without the sources below it."""
    return next(code for code in codes(app) if "import transformer" in code).split("\n\n\n# ")[0]


def said(app) -> str:
    return "\n".join([said_on_page(app), *([sentence_about_the_step(app)] if drawn(app) else [])])


@pytest.mark.parametrize("checkpoint", WRITERS)
def test_every_step_says_what_came(open_app: Callable, tiny_checkpoint: Callable, checkpoint: str) -> None:
    app = open_app("decoding", checkpoint=checkpoint, sentence=SENTENCE, layer="1", head="1")
    decoding = transformer.decode(tiny_checkpoint(checkpoint), SENTENCE)
    for step in (0, 1, len(decoding.steps) - 1, 0):
        go(app, step)
        is_fine(app)
        chosen = decoding.steps[step].chosen
        line = sentence_about_the_step(app)
        assert f"the next token is **{chosen.display}**" in line
        assert f"**{three_digits(chosen.probability)}**" in line
        assert line.startswith(TEXT["at_beginning"] if checkpoint == "tiny-translator" and not step else "After")


def test_stepping_runs_no_model(open_app: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app("decoding", checkpoint="tiny-translator", sentence=SENTENCE)
    monkeypatch.setattr(torch.nn.Module, "__call__", lambda *_, **__: pytest.fail("a step must not run the model"))
    for step in (1, 2, 1):
        go(app, step)
        is_fine(app)
        assert TEXT["at_beginning"] not in said(app)


def test_a_step_beyond_the_end_is_the_last_one(open_app: Callable, tiny_checkpoint: Callable) -> None:
    app = open_app("decoding", checkpoint="tiny-translator", sentence=SENTENCE, step="999")
    is_fine(app)
    last = transformer.decode(tiny_checkpoint("translator"), SENTENCE).steps[-1]
    assert f"**{last.chosen.display}**" in said(app)


def test_a_text_opens_where_the_model_hesitates(open_app: Callable, tiny_checkpoint: Callable) -> None:
    def hesitates(sentence: str) -> str:
        decoding = transformer.decode(tiny_checkpoint("translator"), sentence)
        words = [step for step in decoding.steps if is_choice_of_words(decoding, step.index)]
        chosen = min((step.chosen for step in words or decoding.steps), key=lambda one: one.probability)
        return f"the next token is **{chosen.display}**"

    app = open_app("decoding", checkpoint="tiny-translator", sentence=SENTENCE, step="two")
    assert hesitates(SENTENCE) in sentence_about_the_step(app)
    app = open_app("decoding", checkpoint="tiny-translator", sentence=SENTENCE, step="0")
    assert TEXT["at_beginning"] in said(app)
    app.text_input(key="sentence").set_value("It is raining.").run()
    is_fine(app)
    assert hesitates("It is raining.") in sentence_about_the_step(app)


def test_sampling_with_a_seed_is_what_the_library_writes(open_app: Callable, tiny_checkpoint: Callable) -> None:
    app = open_app(
        "decoding",
        checkpoint="tiny-translator",
        sentence=SENTENCE,
        strategy="sampling",
        seed="7",
        temperature="1.5",
        top_k="20",
        step="0",
    )
    app.run()
    is_fine(app)
    assert app.number_input(key="seed").value == 7 and app.slider(key="temperature").value == 1.5
    strategy = transformer.Sample(temperature=1.5, top_k=20, seed=7)
    decoding = transformer.decode(tiny_checkpoint("translator"), SENTENCE, strategy)
    assert decoding.text in said(app).replace("\\", "")
    chosen = decoding.steps[0].chosen
    assert f"the next token is **{chosen.display}**, drawn with a chance of **{three_digits(chosen.chance)}**" in said(
        app
    )
    app.number_input(key="seed").set_value(8).run()
    other = transformer.decode(
        tiny_checkpoint("translator"), SENTENCE, transformer.Sample(temperature=1.5, top_k=20, seed=8)
    )
    assert other.text != decoding.text and other.text in said(app)
    app.number_input(key="seed").set_value(7).run()
    assert decoding.text in said(app)


def test_reshaping_a_greedy_step_counts_what_is_kept_and_changes_no_word(
    open_app: Callable, tiny_checkpoint: Callable
) -> None:
    app = open_app("decoding", checkpoint="tiny-translator", sentence=SENTENCE, step="0")
    whole = next(text.value for text in app.caption if text.value.startswith("The whole text"))
    possible = tiny_checkpoint("translator").config.vocabulary_size - 2
    assert f"{possible} of {possible} tokens can still be drawn" in said(app)
    app.slider(key="top_k").set_value(5).run()
    app.slider(key="temperature").set_value(2.0).run()
    is_fine(app)
    assert f"5 of {possible} tokens can still be drawn" in said(app)
    assert whole in [text.value for text in app.caption]
    app.slider(key="top_k").set_value(0).run()
    app.slider(key="top_p").set_value(0.5).run()
    logits = torch.tensor(transformer.decode(tiny_checkpoint("translator"), SENTENCE).steps[0].logits) / 2.0
    ordered = logits.softmax(-1).sort(descending=True).values
    kept = int((ordered.cumsum(-1) - ordered < 0.5).sum())
    assert f"{kept} of {possible} tokens can still be drawn" in said(app)


def test_a_word_that_was_given_is_beside_the_one_that_the_model_predicts(open_app: Callable, monkeypatch) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    app = open_app("decoding", checkpoint="gpt-en", sentence="My grandmother bakes apple pie every Sunday.")
    is_fine(app)
    line = sentence_about_the_step(app)
    assert "every”, the model predicts **·day** (0.750)" in line and "has **·Sunday** (0.00188, rank 13)" in line
    assert TEXT["begins_forced"] not in said(app), "nothing continues a text that is complete"
    go(app, 7)  # the full stop, which the model predicts as well
    assert "the model predicts **.** (" in (line := sentence_about_the_step(app)) and "as in the given text" in line


def test_a_given_beginning_is_marked_and_continued(open_app: Callable) -> None:
    app = open_app("decoding", checkpoint="tiny-translator", sentence=SENTENCE, target="Le chat dort", step="0")
    is_fine(app)
    assert "The given text has" in said(app) and TEXT["begins_forced"] in said(app)
    assert "The whole text: Le chat dort" in said(app)
    go(app, 99)
    assert "The given text has" not in said(app)


@pytest.mark.parametrize("checkpoint", WRITERS)
def test_the_drawing_holds_the_candidates_of_every_step(
    open_app: Callable, tiny_checkpoint: Callable, checkpoint: str
) -> None:
    app = open_app("decoding", checkpoint=checkpoint, sentence=SENTENCE, strategy="sampling", seed="3")
    is_fine(app)
    metadata, arrays = drawn(app)
    decoding = transformer.decode(tiny_checkpoint(checkpoint), SENTENCE, transformer.Sample(seed=3))
    assert [token["text"] for token in metadata["tokens"]] == list(decoding.tokens.displays)
    for row, step in enumerate(decoding.steps):
        likeliest = list(step.candidates[:10])
        if step.chosen not in likeliest:
            likeliest[-1] = step.chosen
        assert metadata["candidates"][row] == [candidate.display for candidate in likeliest]
        assert metadata["chosen"][row] == likeliest.index(step.chosen)
        above = int((step.logits > step.logits[step.chosen.id]).sum())
        assert metadata["ranks"][row] == (above + 1 if above >= 10 else 0), "the 10th bar may rank lower"
        probabilities = np.array([candidate.probability for candidate in likeliest])
        assert np.allclose(arrays["probabilities"][row], probabilities, rtol=1e-5, atol=0)
        assert arrays["rest"][row] == pytest.approx(1 - probabilities.sum(), abs=1e-6)


@pytest.mark.parametrize("checkpoint", WRITERS)
def test_attention_of_each_kind(open_app: Callable, tiny_checkpoint: Callable, checkpoint: str) -> None:
    app = open_app("decoding", checkpoint=checkpoint, sentence=SENTENCE, stack="decoder", layer="1", head="1", pads="2")
    loaded = tiny_checkpoint(checkpoint)
    pads = 2 if loaded.config.has_encoder else 0
    decoding = transformer.decode(loaded, SENTENCE, source_pads=pads, record_steps=True)

    def check(kind: str, head: int | None) -> None:
        is_fine(app)
        metadata, arrays = drawn(app)
        allowed = np.unpackbits(arrays["allowed"], bitorder="little")[: arrays["weights"].size]
        allowed = allowed.reshape(arrays["weights"].shape).astype(bool)
        for step in range(len(decoding.steps)):
            found = step_attention(loaded, decoding, SENTENCE, step=step, layer=1, kind=kind)
            count = metadata["counts"][step]
            assert count == len(found.key) and metadata["columns"][:count] == list(found.key.labels)
            assert np.allclose(arrays["weights"][step, :count] / 65535, found.of(head), atol=1e-5)
            assert (allowed[step, :count] == found.allowed).all() and not allowed[step, count:].any()

    first = "cross" if loaded.config.has_encoder else "self"
    check(first, None)
    app.segmented_control(key="attention_heads").set_value("one").run()
    check(first, 1)
    if checkpoint == "tiny-translator":
        assert "the weights on the source" in said(app)
        app.segmented_control(key="attention_kind").set_value("self").run()
        check("self", 1)
    assert "the weights on the text so far at this step" in said(app)


def test_the_drawing_stays_the_same_while_the_reader_walks(open_app: Callable) -> None:
    app = open_app("decoding", checkpoint="tiny-translator", sentence=SENTENCE, step="2")
    before = drawn(app)[0]
    assert before["begin"][1] == 2
    go(app, 4)
    assert drawn(app)[0] == before, "or it would be sent again at every rest, and the reader moved back"
    assert "Step 5 is marked" in said(app) and "Step 5:" in said(app)
    app.text_input(key="sentence").set_value("It is raining.").run()
    after = drawn(app)[0]
    assert after["begin"][0] != before["begin"][0]


@pytest.mark.parametrize("checkpoint", WRITERS)
def test_the_snippet_writes_the_same_text(open_app: Callable, run_snippet: Callable, checkpoint: str) -> None:
    app = open_app(
        "decoding", checkpoint=checkpoint, sentence="It's <b>'odd'</b>", strategy="sampling", seed="3", step="1"
    )
    snippet = python_of(app)
    assert "Sample(temperature=1.0, top_k=0, top_p=1.0, seed=3" in snippet
    text, log_probability = run_snippet(snippet).splitlines()
    assert text in said(app).replace("\\", "") and f"Σ log p = {three_digits(float(log_probability))}" in said(app)


def test_blanks_are_filled(open_app: Callable, tiny_checkpoint: Callable, run_snippet: Callable) -> None:
    sentence = "The ___ sat on the [MASK]."
    app = open_app("decoding", checkpoint="tiny-bert", sentence=sentence)
    is_fine(app)
    checkpoint = tiny_checkpoint("bert")
    trace = transformer.trace(checkpoint, sentence)
    first, second = blanks(trace)
    for position in (first, second):
        app.segmented_control(key="blank").set_value(position).run()
        is_fine(app)
        best = fillings(trace, position).rows[0]
        assert f"predicts **{best.piece}**, with probability **{three_digits(best.probability)}**" in said(app)
    printed = run_snippet(python_of(app))
    assert float(printed) == pytest.approx(best.probability, rel=1e-5)


def test_a_masked_word_is_beside_the_prediction(open_app: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(ROOT / "checkpoints"))
    app = open_app("decoding", checkpoint="bert-en", sentence="My grandmother bakes apple pie every Sunday.", masked="")
    is_fine(app)
    assert "predicts **·day**, with probability **0.476**" in said(app)
    assert "Your text has **·Sunday** (0.00501)." in said(app)
    assert common("uncertain.mistakes") not in said(app), "several words fit"


def marked_in_strip(app) -> list[int | None]:
    (strip,) = (component for component in app.get("bidi_component") if component.key == "token strip")
    return [row["chosen"] for row in json.loads(strip.proto.json)["rows"]]


def test_the_strip_marks_the_blank_that_is_answered(open_app: Callable, tiny_checkpoint: Callable) -> None:
    sentence = "The ___ sat on the [MASK]."
    first, second = blanks(transformer.trace(tiny_checkpoint("bert"), sentence))
    app = open_app("decoding", checkpoint="tiny-bert", sentence=sentence)
    assert marked_in_strip(app) == [first], "not <s>, with which every focus begins"
    for position in (second, first, second):  # back to the first as well, which the address need not contain
        app.segmented_control(key="blank").set_value(position).run()
        assert marked_in_strip(app) == [position]
    app.session_state["focus"] = replace(app.session_state["focus"], token=first)  # as a click in the strip does it
    app.run()
    assert marked_in_strip(app) == [app.segmented_control(key="blank").value] == [first]
    assert f"at position {first}." in said(app)
    (only,) = blanks(transformer.trace(tiny_checkpoint("bert"), "The ___ sat."))
    assert marked_in_strip(open_app("decoding", checkpoint="tiny-bert", sentence="The ___ sat.", token="1")) == [only]
    copied = open_app("decoding", checkpoint="tiny-bert", sentence=sentence, token=str(first), blank=str(second))
    assert marked_in_strip(copied) == [copied.segmented_control(key="blank").value] == [second]


def test_without_a_blank_it_explains_how_to_type_one(open_app: Callable) -> None:
    app = open_app("decoding", checkpoint="tiny-bert", sentence="The cat sat on the mat.", token="2", masked="none")
    is_fine(app)
    assert "Type `___` in place of a word." in said(app)
    assert "position 2" in said(app)


def test_a_classifier_gives_its_verdict_and_each_words_share(
    open_app: Callable, tiny_checkpoint: Callable, run_snippet: Callable
) -> None:
    app = open_app("decoding", checkpoint="tiny-sentiment", sentence=SENTENCE, pads="3")
    is_fine(app)
    found = leave_one_out(tiny_checkpoint("sentiment"), SENTENCE, pads=3)
    verdict = int(found.probabilities.argmax())
    name = found.class_names[verdict]
    probability = three_digits(float(found.probabilities[verdict]))
    assert f"Its prediction: **{name}**, with probability **{probability}**" in said(app)
    assert f"{len(found.words)} more times" in said(app)
    other = found.class_names[1 - verdict]
    app.segmented_control(key="class_shown").set_value(other).run()
    is_fine(app)
    assert f"the probability of “{other}” falls" in said(app)
    printed = run_snippet(python_of(app)).splitlines()
    assert "\n".join(printed) == f"{found.probabilities}\n{found.contributions}"


SECTIONS = {name: TEXT["section"][name] for name in ("step", "strategies", "tree", "alignment")}


@pytest.mark.parametrize("section", ("strategies", "tree", "alignment"))
@pytest.mark.parametrize("checkpoint", WRITERS)
@pytest.mark.parametrize("sentence", (SENTENCE, "</s> **x** $a$ <b>alert(1)</b> # a | b", "😀"))
def test_every_section_on_every_model_that_writes(
    open_app: Callable, checkpoint: str, section: str, sentence: str
) -> None:
    app = open_app("decoding", checkpoint=checkpoint, sentence=sentence, decoding_section=SECTIONS[section])
    is_fine(app)
    if section == "alignment" and checkpoint == "tiny-gpt":  # there is no cross-attention to align by
        section = "step"
        assert TEXT["section"]["alignment"] not in app.segmented_control(key="decoding_section").options
    assert app.segmented_control(key="decoding_section").value == section
    assert not any("<b>" in element.value.replace("\\<", "") for element in (*app.markdown, *app.caption))


def offered(app) -> set[str]:
    """Return the attention options beside the sentence."""
    return {name for name in ("layer", "head") if any(c.key == f"choose {name}" for c in app.selectbox)}


@pytest.mark.parametrize("checkpoint", (*WRITERS, "tiny-bert"))
def test_the_sidebar_offers_only_what_changes_the_picture(open_app: Callable, checkpoint: str) -> None:
    app = open_app("decoding", checkpoint=checkpoint, sentence=SENTENCE)
    assert offered(app) == {"layer"}, "the mean of all heads"
    app.segmented_control(key="attention_heads").set_value("one").run()
    assert offered(app) == {"layer", "head"}
    if checkpoint == "tiny-bert":
        return
    for section in ("strategies", "tree"):
        app.segmented_control(key="decoding_section").set_value(section).run()
        assert offered(app) == set(), section
    app.segmented_control(key="decoding_section").set_value("step").run()
    assert offered(app) == {"layer", "head"}


def test_the_alignment_of_the_best_layer_has_no_layer_to_choose(open_app: Callable, monkeypatch) -> None:
    monkeypatch.setattr("views.decoding.decoding_sections.best_layer", lambda p: 0)
    app = open_app("decoding", checkpoint="tiny-translator", sentence=SENTENCE, decoding_section="alignment")
    assert offered(app) == set()
    app.segmented_control(key="alignment_layer").set_value("chosen").run()
    assert offered(app) == {"layer"}


@pytest.mark.parametrize("checkpoint", WRITERS)
def test_strategies_write_what_the_library_writes(
    open_app: Callable, tiny_checkpoint: Callable, run_snippet: Callable, checkpoint: str
) -> None:
    app = open_app(
        "decoding",
        checkpoint=checkpoint,
        sentence=SENTENCE,
        decoding_section=SECTIONS["strategies"],
        seed="3",
        beam_width="3",
        length_penalty="1.0",
    )
    is_fine(app)
    strategies = (transformer.Greedy(), transformer.Sample(seed=3), transformer.Beam(3, length_penalty=1.0))
    written = [transformer.decode(tiny_checkpoint(checkpoint), SENTENCE, strategy) for strategy in strategies]
    for decoding in written:
        total, count = decoding.log_probability, len(decoding.tokens)
        assert (
            f"Σ log p = **{three_digits(total)}** · per token **{three_digits(total / count)}** · {count} tokens · "
            f"score {three_digits(total / ((5 + count) / 6))}" in said(app)
        )
    table = app.dataframe[0].value
    assert list(table["text"]) == [decoding.text for decoding in written]
    assert np.allclose(table["Σ log p"], [decoding.log_probability for decoding in written])
    gain = np.exp(written[2].log_probability - written[0].log_probability)
    verdict = "the same text" if written[2].text == written[0].text else f"{three_digits(max(gain, 1 / gain))} times"
    assert verdict in said(app)
    printed = run_snippet(python_of(app)).splitlines()
    numbers = [float(line) for line in printed if re.fullmatch(r"-[0-9.]+", line)]
    assert numbers == pytest.approx(list(table["Σ log p"]), rel=1e-5)


def test_draw_again_is_the_next_seed(open_app: Callable, tiny_checkpoint: Callable) -> None:
    app = open_app("decoding", checkpoint="tiny-translator", sentence=SENTENCE, decoding_section=SECTIONS["strategies"])
    before = app.dataframe[0].value["text"][1]
    app.button(key="draw again").click().run()
    is_fine(app)
    assert app.number_input(key="seed").value == 1
    after = app.dataframe[0].value["text"][1]
    assert after != before
    assert after == transformer.decode(tiny_checkpoint("translator"), SENTENCE, transformer.Sample(seed=1)).text


def test_the_tree_tells_what_the_search_returned(
    open_app: Callable, tiny_checkpoint: Callable, run_snippet: Callable
) -> None:
    app = open_app(
        "decoding",
        checkpoint="tiny-translator",
        sentence=SENTENCE,
        decoding_section=SECTIONS["tree"],
        beam_width="3",
        length_penalty="2.0",
    )
    is_fine(app)
    tree = beam_tree(tiny_checkpoint("translator"), SENTENCE, transformer.Beam(3, length_penalty=2.0))
    assert f"In {tree.n_steps} steps the search recorded {len(tree.nodes):,} branches" in said(app)
    table = app.dataframe[0].value
    assert list(table["text"]) == [text.text for text in tree.hypotheses]
    assert list(table["score"]) == [text.score for text in tree.hypotheses]
    assert tree.n_steps > 12, "long enough for a window"
    assert f"Steps 1 to 12 of {tree.n_steps} are drawn" in said(app)
    app.slider(key="first step").set_value(3).run()
    is_fine(app)
    assert f"Steps 3 to 14 of {tree.n_steps} are drawn" in said(app)
    words = [node for node in tree.winner if node.fate != "finished"]
    worst = max(words, key=lambda node: node.rank)
    assert (f"ranked only {worst.rank}" if worst.rank > 1 else "the most likely text at every step") in said(app)
    printed = run_snippet(python_of(app)).splitlines()
    assert float(printed[0]) == pytest.approx(tree.winner[-1].score, rel=1e-5)


@pytest.mark.parametrize("when", ("written", "read"))
def test_words_are_aligned_as_the_library_aligns_them(
    open_app: Callable, tiny_checkpoint: Callable, run_snippet: Callable, when: str
) -> None:
    app = open_app(
        "decoding",
        checkpoint="tiny-translator",
        sentence=SENTENCE,
        target="Le vieil homme dort.",
        layer="1",
        head="1",
        stack="decoder",
        decoding_section=SECTIONS["alignment"],
    )
    app.segmented_control(key="when").set_value(when).run()
    app.segmented_control(key="attention_heads").set_value("one").run()
    is_fine(app)
    trace = transformer.trace(tiny_checkpoint("translator"), SENTENCE, target="Le vieil homme dort.")
    found = align(trace, layer=1, head=1, when=when)
    best = found.best(specials=False)
    table = app.dataframe[0].value
    assert list(table["word of the output"]) == [word.text for word in found.target]
    assert list(table["source word"]) == [found.source[place].text for place in best]
    assert {"Le", "vieil", "homme", "dort", "."} <= set(table["word of the output"])
    assert np.allclose(table["weight"], found.weights[np.arange(len(best)), best])
    printed = run_snippet(python_of(app)).splitlines()
    assert printed[-1] == str(best)


@pytest.mark.parametrize("checkpoint", WRITERS)
def test_another_word_is_forced_and_the_branch_kept_beside_the_original(
    open_app: Callable, tiny_checkpoint: Callable, checkpoint: str
) -> None:
    app = open_app("decoding", checkpoint=checkpoint, sentence=SENTENCE, step="2")
    loaded = tiny_checkpoint(checkpoint)
    original = transformer.decode(loaded, SENTENCE)
    assert app.button(key="force go").disabled and "Branches" not in said(app)
    asked = next(box for box in app.selectbox if box.label.startswith("Another word at step 3"))
    asked.select_index(2).run()
    app.button(key="force go").click().run()
    is_fine(app)
    other = [c for c in original.steps[2].candidates if c.id != original.tokens.ids[2]][2]
    ids = (*original.tokens.ids[:2], other.id)
    branch = transformer.decode(loaded, SENTENCE, forced=ids)
    assert branch.tokens.ids[:3] == ids and branch.text != original.text
    assert f"the next token is **{other.display}**, because you forced it" in said(app)
    assert f"The whole text: {branch.text}" in said(app)
    change = branch.log_probability - original.log_probability
    assert f"Σ log p = {three_digits(branch.log_probability)} ({signed(change)} against the original)" in said(app)
    assert app.query_params["branches"] in (f"{ids[0]}.{ids[1]}-{ids[2]}", [f"{ids[0]}.{ids[1]}-{ids[2]}"])
    go(app, 1)
    assert "as in the text that this branch started from" in said(app)
    app.button(key="look at branch 0").click().run()
    is_fine(app)
    assert f"The whole text: {original.text}" in said(app) and "because you forced it" not in said(app)
    app.button(key="look at branch 1").click().run()
    assert "because you forced it" in said(app)
    app.button(key="remove branch 1").click().run()
    is_fine(app)
    assert f"The whole text: {original.text}" in said(app) and "**Branches**" not in said(app)


def test_any_word_can_be_typed_and_branches_are_in_the_address(open_app: Callable, tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint("translator")
    word = checkpoint.tokenizer.encode("parapluie")
    forced = ".".join(map(str, word))
    address = f"-{forced},1-5,7-,9.x-3,5.2-7"  # only the first branch is possible
    app = open_app("decoding", checkpoint="tiny-translator", sentence=SENTENCE, branches=address)
    is_fine(app)
    assert len(word) > 1 and app.query_params["branches"] in (f"-{forced}", [f"-{forced}"])
    app.button(key="look at branch 1").click().run()
    is_fine(app)
    branch = transformer.decode(checkpoint, SENTENCE, forced=word)
    assert f"The whole text: {branch.text}" in said(app) and branch.text.startswith("parapluie")
    app.text_input(key="sentence").set_value("It is raining.").run()
    is_fine(app)
    assert "**Branches**" not in said(app), "branches of another text are gone"


def test_the_drawing_says_what_was_given_and_gets_plain_text(open_app: Callable) -> None:
    app = open_app("decoding", checkpoint="tiny-translator", sentence=SENTENCE, target="<b>Le</b> chat", language="fr")
    is_fine(app)
    metadata, _ = drawn(app)
    given = [token["given"] for token in metadata["tokens"]]
    assert given[0] and not given[-1] and given == sorted(given, reverse=True)
    assert metadata["before"] == [{"text": "<s>", "special": True}]
    assert "".join(token["text"] for token in metadata["tokens"]).replace("·", " ").strip().startswith("<b>Le</b> chat")
    assert metadata["said"][0][0].startswith("Au début, le modèle prédit ") and metadata["words"]["chosen"] == "choisi"
