"""Every page with every other family: it opens, and its statements are true of this model."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import transformer
from tests.foreign_checkpoints import FOREIGN, foreign_checkpoint
from tests.nights import FAMILIES_BY_DAY, by_day
from tests.pages.conftest import choose_text, codes, said
from tests.pages.page_views import SIDEBAR, TRANSLATOR, VIEWS, WRITERS, View
from transformer.faults.catalogue import diagnoses, inapplicable
from transformer.faults.checked_models import checked_model
from transformer.faults.fault_checks import CHECKS
from ui.words.texts import page_text

# The rare families, and one each without their features, with parallel branches, and with a bias.
SOME = (*FAMILIES_BY_DAY, "hf-gpt2")
MOST = by_day(FOREIGN, (*SOME, "hf-neox"))
DECODERS = ("hf-gpt2", "hf-llama", "hf-gemma2", "hf-neox")
ENCODERS = ("hf-bert", "hf-bert-classes")
OPENED = [view for view in VIEWS if view.box == SIDEBAR]


@pytest.fixture
def open_family(open_app: Callable, families_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(families_folder))
    return open_app


def fine(app: AppTest) -> AppTest:
    assert not app.exception
    assert not app.error, [error.value for error in app.error]
    return app


def formulas(app: AppTest) -> str:
    return "\n".join(latex.value for latex in app.latex)


def families_of(view: View) -> list[str]:
    """Return the families that a view applies to: with two stacks, or with a decoder."""
    without = {TRANSLATOR: ENCODERS + DECODERS, WRITERS: ENCODERS}.get(tuple(view.kinds), ())
    return [family for family in FOREIGN if family not in without]


def cases() -> list[object]:
    """Every view with every family in nightly runs; otherwise each view once, with the families in turn."""
    return [
        pytest.param(view, family, id=f"{view.name}, {family}", marks=() if number % n == k else pytest.mark.nightly)
        for number, view in enumerate(OPENED)
        for n in [len(families_of(view))]
        for k, family in enumerate(families_of(view))
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("view", "checkpoint"), cases())
def test_every_view_of_every_page_opens_with_every_family(open_family: Callable, view: View, checkpoint: str) -> None:
    app = fine(open_family(view.page, checkpoint=checkpoint, **view.address))
    view.check(app, app.session_state["focus"].sentence)


def test_every_family_is_tried_by_day() -> None:
    tried = [case.values[1] for case in cases() if not case.marks]
    assert set(tried) == FOREIGN.keys() and len(tried) == len(OPENED)


ATTENTION = [(name, "encoder" if name in ("hf-bert", "hf-t5", "hf-marian") else "decoder")
             for name in FOREIGN if name != "hf-bert-classes"]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("checkpoint", "stack"),
    [pytest.param(*case, marks=() if case[0] in SOME else pytest.mark.nightly) for case in ATTENTION],
)
def test_all_steps_of_a_head_and_its_arithmetic(
    open_family: Callable, families_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkpoint: str,
    stack: str, run_snippet: Callable,
) -> None:  # fmt: skip
    app = fine(open_family("attention", checkpoint=checkpoint, stack=stack, kind="self", layer="1", token="3"))
    steps, said_by_step = app.segmented_control(key="attention_step").options, {}
    for step in range(1, 8):
        fine(app.segmented_control(key="attention_step").set_value(step).run())
        said_by_step[str(step)] = said(app) + formulas(app)
    scaled = said_by_step["3"]
    if checkpoint in ("hf-gpt2", "hf-llama", "hf-bert", "hf-neox", "hf-marian"):
        assert r"\sqrt{d_k}" in scaled
    else:
        assert r"\sqrt{d_k}" not in scaled and steps[2] == "3 scale"
    assert ("does not scale its products" in scaled) == (checkpoint == "hf-t5")
    assert (r"\tanh" in scaled) == (checkpoint == "hf-gemma2")
    assert ("share one head of keys" in said_by_step["1"]) == (checkpoint in ("hf-llama", "hf-gemma2"))
    assert ("b_Q" in said_by_step["1"]) == (checkpoint not in ("hf-t5", "hf-gemma2"))
    key = app.selectbox(key="attention_key")
    fine(key.set_value(key.options[2]).run())
    snippet = next(code for code in codes(app) if "W_Q =" in code)
    (tmp_path / "checkpoints").unlink()
    (tmp_path / "checkpoints").symlink_to(families_folder)
    ours, models = map(float, run_snippet(snippet).split())
    assert ours == pytest.approx(models, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", FOREIGN)
def test_how_far_to_trust_the_map(open_family: Callable, checkpoint: str) -> None:
    app = fine(open_family("attention", checkpoint=checkpoint, attention_section="How far to trust this map"))
    assert ("× √d_model" in formulas_and_captions(app)) == (checkpoint in ("hf-gemma2", "hf-marian"))


def formulas_and_captions(app: AppTest) -> str:
    return formulas(app) + said(app)


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", by_day(FOREIGN, SOME))
def test_every_view_of_every_norm(
    open_family: Callable, families_folder: Path, tmp_path: Path, run_snippet: Callable, checkpoint: str
) -> None:
    text = page_text("add_norm")
    rms = checkpoint in ("hf-llama", "hf-gemma2", "hf-t5")
    seen = {}
    for view in ("statistics", "arithmetic", "parameters", "stream", "updates"):
        app = open_family("add_norm", checkpoint=checkpoint, token="2")
        choose_text(app, "add norm view", text["tab"][view])
        fine(app.run())
        seen[view] = said(app) + formulas(app)
        if view == "arithmetic":
            (tmp_path / "checkpoints").unlink()
            (tmp_path / "checkpoints").symlink_to(families_folder)
            snippet = next(code for code in codes(app) if code.startswith("import transformer"))
            value, deviation = map(float, run_snippet(snippet).splitlines()[-2:])
            shown = next(table.value for table in app.dataframe if "output" in table.value)
            assert value == pytest.approx(shown["output"][0], rel=1e-4) and deviation < 1e-3
    assert (r"\text{RMSNorm}" in seen["statistics"]) == rms
    assert (r"\mu" in seen["statistics"]) == (not rms)
    assert ("The other formula" in seen["arithmetic"]) == (not rms)
    assert (text["parallel"] in seen["stream"]) == (checkpoint == "hf-neox")
    assert (text["sandwich"] in seen["stream"]) == (checkpoint == "hf-gemma2")


@pytest.mark.parametrize(
    ("checkpoint", "claim"),
    [("hf-gemma2", "claim_sandwich_rms"), ("hf-llama", "claim_pre_rms"), ("hf-bert", "claim_post")],
)
def test_the_claim_says_where_the_norm_of_this_model_stands(open_family: Callable, checkpoint: str, claim: str) -> None:
    text = page_text("add_norm")
    shown = said(fine(open_family("add_norm", checkpoint=checkpoint, token="2")))
    parts = {name: re.split(r"\{\w+\}", text[name]) for name in ("claim_pre_rms", "claim_post", "claim_sandwich_rms")}
    named = [name for name, words in parts.items() if all(part in shown for part in words)]
    assert named == [claim]


@pytest.mark.parametrize(("checkpoint", "norms"), [("hf-gemma2", 5), ("hf-bert", 4)])
def test_norms_that_other_families_have_besides(open_family: Callable, checkpoint: str, norms: int) -> None:
    app = open_family("add_norm", checkpoint=checkpoint)
    choice = app.segmented_control(key="norm")
    assert len(choice.options) == norms, choice.options
    for name in ("self_attention_output_norm", "embedding_norm", "vocabulary_projection_norm"):
        if page_text("add_norm")["norm"].get(name) in choice.options:
            fine(app.segmented_control(key="norm").set_value(name).run())


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", MOST)
def test_the_feed_forward_layer_is_the_models_own(
    open_family: Callable, families_folder: Path, tmp_path: Path, run_snippet: Callable, checkpoint: str
) -> None:
    text = page_text("feed_forward")
    gated = checkpoint in ("hf-llama", "hf-gemma2", "hf-t5")
    for view in ("token", "words", "sentence"):
        app = open_family("feed_forward", checkpoint=checkpoint, token="2", layer="1")
        choose_text(app, "feed-forward view", text["tab"][view])
        fine(app.run())
        assert (r"\odot" in formulas(app)) == gated
        assert ("b_2" in formulas(app)) == (checkpoint not in ("hf-gemma2", "hf-t5"))
        if view == "words":
            assert bool(app.info) == (checkpoint == "hf-bert")
        if view == "token":
            (tmp_path / "checkpoints").unlink()
            (tmp_path / "checkpoints").symlink_to(families_folder)
            snippet = next(code for code in codes(app) if "computed =" in code)
            computed, recorded = map(float, run_snippet(snippet).split()[-2:])
            assert computed == pytest.approx(recorded, rel=1e-3, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("checkpoint", "formula"),
    [
        ("hf-llama", r"\theta'_i = \theta_i / \lambda_i"),
        ("hf-neox", r"^{-2i/4}"),
        ("hf-marian", r"PE_{\text{pos},\,i+18}"),
        ("hf-t5", r"s_{ij} = q_i \cdot k_j + b_"),
        ("hf-gpt2", r"P[\text{pos}]"),
    ],
)
def test_positions_are_the_models_own(open_family: Callable, checkpoint: str, formula: str) -> None:
    app = fine(open_family("positions", checkpoint=checkpoint))
    views = app.segmented_control(key="positions view").options
    first = ["Another order"]
    assert views[:1] == first
    seen = {view: formulas(fine(app.segmented_control(key="positions view").set_value(view).run())) for view in views}
    described = "Rotation angles" if checkpoint in ("hf-llama", "hf-neox") else views[len(first)]
    assert formula in seen[described], seen


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", FOREIGN)
def test_a_healthy_model_passes_every_check_and_mistakes_fit_the_model(family: Callable, checkpoint: str) -> None:
    loaded = family(checkpoint)
    target = "Le chat dort." if loaded.config.kind == "encoder-decoder" else None
    checked = checked_model(transformer.trace(loaded, "The cat sat on the mat.", target))
    found = {name: check(checked) for name, check in CHECKS.items()}
    assert [name for name, finding in found.items() if finding and finding.fires] == []
    assert {"scale", "norm"} <= set(inapplicable(loaded.config)) and found["scale"] is None
    assert ("padding" in inapplicable(loaded.config)) == (found["padding"] is None)
    for fault in {one.fault for one in diagnoses(loaded.config) if not one.in_training} - {"healthy"}:
        assert CHECKS[fault](checked_model(transformer.trace(loaded, "The cat sat.", target), fault)) is not None


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", ["hf-t5", "hf-marian", "hf-gpt2"])
def test_the_padding_of_the_masks_page(open_family: Callable, checkpoint: str) -> None:
    app = open_family("masks", checkpoint=checkpoint)
    assert not app.segmented_control(key="masks view").set_value("padding").run().exception
    assert not app.error


def test_nobody_is_sent_to_add_padding_where_there_is_none(
    open_app: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = foreign_checkpoint("hf-bert", tmp_path) / "tokenizer_config.json"
    settings.write_text(settings.read_text().replace('"[PAD]"', '"[UNK]"'))
    monkeypatch.setenv("GLASSFORMER_CHECKPOINTS", str(tmp_path))
    app = fine(open_app("masks", checkpoint="hf-bert"))
    fine(app.segmented_control(key="mask preset").set_value("no padding mask").run())
    assert page_text("masks")["never_pads"] in said(app) and "Target, padding" not in said(app)


@pytest.mark.slow
@pytest.mark.parametrize(
    "checkpoint", by_day(["hf-t5", "hf-bert", "hf-bert-classes", "hf-marian"], ("hf-bert", "hf-t5"))
)
def test_padding_on_every_page(open_family: Callable, checkpoint: str) -> None:
    """All pages are visited with three padding tokens after the sentence."""
    app = fine(open_family("attention", checkpoint=checkpoint, pads="3", stack="encoder", kind="self"))
    for page in dict.fromkeys(view.page for view in VIEWS if view.refuses):
        app.switch_page(f"pages/{page}.py").run()
        fine(app)
        assert app.query_params["pads"] == "3", page


@pytest.mark.parametrize(
    ("checkpoint", "factor"), [("hf-gpt2", ""), ("hf-gemma2", "√d_model"), ("hf-marian", "√d_model")]
)
def test_rows_of_e_are_multiplied_only_where_the_model_does_it(
    open_family: Callable, checkpoint: str, factor: str
) -> None:
    app = fine(open_family("embeddings", checkpoint=checkpoint))
    shown = said(app) + " ".join(str(column) for table in app.dataframe for column in table.value.columns)
    assert ("√d_model" in shown) is bool(factor)
    assert ("does not scale the row" in shown) is (not factor)


@pytest.mark.parametrize("checkpoint", ["hf-bert", "hf-bert-classes", "hf-t5"])
def test_one_training_step_names_every_block(open_family: Callable, checkpoint: str) -> None:
    app = open_family("training", checkpoint=checkpoint)
    fine(app.segmented_control(key="training section").set_value("step").run())
    names = app.get("plotly_chart")[0].proto.spec
    assert ("classifier: dense layer" in names) == (checkpoint == "hf-bert-classes")


@pytest.mark.parametrize(
    ("checkpoint", "formula"),
    [
        # 9 is the blank that the page opens with
        ("hf-bert", r"\text{norm}\big(f(h_{9}\, W_1 + b_1)\big)\, E^\top + c"),
        ("hf-bert-classes", r"f(h_0\, W_1 + b_1)\, W + b"),
        ("hf-gemma2", r"3 \tanh\big((h\, E^\top) / 3\big)"),
        ("hf-t5", r"z = h\, E^\top"),
        ("hf-marian", r"z = h\, E^\top + b"),
        ("hf-llama", r"z = h\, W"),
    ],
)
def test_the_logits_are_made_as_this_model_makes_them(open_family: Callable, checkpoint: str, formula: str) -> None:
    assert formula in formulas(fine(open_family("decoding", checkpoint=checkpoint)))


def test_two_families_side_by_side(open_family: Callable) -> None:
    """Other tokenizers and other kinds of attention: the compared sentences have words in common."""
    text = page_text("compare")
    app = open_family("compare", checkpoint="hf-bert", compare_mode="checkpoints", other="hf-gpt2")
    fine(app)
    assert "**hf-gpt2** has no encoder;" in said(app) and "The most similar is layer" in said(app)
    assert text["sentence_only"] in said(app)
    app = fine(open_family("compare", checkpoint="hf-llama", compare_mode="checkpoints", other="hf-marian"))
    assert "The decoder of **hf-marian** reads none of these tokens" in said(app)
    assert "The most similar is layer" in said(app) and text["heads_none"] not in said(app)
    for mode in ("kinds", "layers"):
        choose_text(app, "compare_mode", mode)
        fine(app.run())


def test_a_window_is_named_where_layers_have_one(open_family: Callable) -> None:
    for checkpoint, named in (("hf-gemma2", True), ("hf-llama", False)):
        assert ("In a layer with a window" in said(fine(open_family("attention", checkpoint=checkpoint)))) == named


def test_the_mask_is_typed_where_there_is_one(open_family: Callable) -> None:
    for checkpoint, one in (("hf-t5", False), ("hf-bert", True)):
        shown = said(fine(open_family("tokens", checkpoint=checkpoint)))
        assert (page_text("tokens")["special_mask"] in shown) == one and "like any other text" in shown


def test_the_end_of_a_text_bears_its_own_name(open_family: Callable) -> None:
    app = open_family("decoding", checkpoint="hf-gpt2")
    fine(app.segmented_control(key="decoding_section").set_value("tree").run())
    assert "<|endoftext|>" in said(app).replace("\\", "") and "</s>" not in said(app)


def test_the_lens_says_which_rows_went_through_a_norm_and_leaves_out_no_token(open_family: Callable) -> None:
    text = page_text("lens")
    bert = said(fine(open_family("lens", checkpoint="hf-bert")))
    assert text["post_normed"] in bert and text["post_bare"] not in bert, "BERT's embedding has a norm behind it"
    marian = said(fine(open_family("lens", checkpoint="hf-marian")))
    assert text["post_bare"] in marian and text["post_normed"] not in marian
    for page in (marian, said(fine(open_family("lens", checkpoint="hf-neox")))):
        assert "When the model generates text (Decoding)" not in page, "these families may write every token"


@pytest.mark.parametrize(("checkpoint", "biased"), [("hf-t5", False), ("hf-bert", True)])
def test_a_bias_stands_in_the_formula_of_the_heads_where_there_is_one(
    open_family: Callable, checkpoint: str, biased: bool
) -> None:
    assert ("b_O" in formulas(fine(open_family("surgery", checkpoint=checkpoint)))) == biased


def test_what_a_decoder_wrote_itself_is_not_counted_as_typed(open_family: Callable) -> None:
    page = said(fine(open_family("tokens", checkpoint="hf-neox", sentence="The cat sat.", written=1)))
    assert "for **12** characters" in page and "The model has also written" in page
    assert "Nothing was added before or after what was typed." in page
