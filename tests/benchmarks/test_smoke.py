"""The benchmarks run on tiny shapes, compare what they claim to compare, and print all rows."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import transformer
from benchmarks import forward_and_decode as benchmark
from benchmarks import pages
from benchmarks.interleaved import Ratio, Timings, time_interleaved
from benchmarks.removed_heads import changed_shares, without_head
from benchmarks.removed_heads import main as count_heads
from benchmarks.workload import MEDIUM, SMALL, Shape, random_checkpoint
from transformer.runs.edits import ablate_head
from transformer.runs.head_places import all_heads
from transformer.training.validation import greedy_texts

TINY = {"vocabulary_size": 300, "d_model": 16, "n_heads": 2, "d_ff": 24, "max_length": 24}
WRITER = Shape("tiny writer", replace(SMALL.config, **TINY, n_decoder_layers=1), 5)
TRANSLATOR = Shape("tiny translator", replace(MEDIUM.config, **TINY, n_encoder_layers=1, n_decoder_layers=2), 6)


def test_all_rows_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    rows = benchmark.measure([WRITER, TRANSLATOR], forward_rounds=2, decoding_rounds=2, n_short=2, n_long=4)
    printed = capsys.readouterr().out
    names = [row.what for row in rows[: len(rows) // 2]]
    assert [row.what for row in rows] == names * 2 and len(set(names)) == len(names) == 13
    assert sum("Hugging Face" in name for name in names) == 7
    assert all(0 < row.ratio.lower <= row.ratio.median <= row.ratio.upper < math.inf for row in rows)
    assert all(text in printed for text in (*map(str, rows), "tiny writer", "tiny translator"))


def test_the_peers_have_the_same_shape() -> None:
    from benchmarks.peers import Peer

    for shape, extra in ((WRITER, 0), (TRANSLATOR, 4 * TRANSLATOR.config.d_model)):
        ours = random_checkpoint(shape.config).model.n_parameters
        theirs = sum(p.numel() for p in Peer(shape, attention="sdpa").model.parameters() if p.requires_grad)
        assert ours == theirs + extra, "pre-norm has a final LayerNorm per stack, Marian has none"


@pytest.mark.parametrize("shape", [WRITER, TRANSLATOR], ids=lambda shape: shape.name)
def test_everything_is_really_recorded(shape: Shape) -> None:
    checkpoint = random_checkpoint(shape.config)
    passes = benchmark.forward_passes(shape, checkpoint)
    assert set(passes["traced"]()) == set(checkpoint.model.probes)
    assert len(passes["read"]()) == len(checkpoint.model.probes)
    written = benchmark.decodings(shape, checkpoint, n_short=2, n_long=7)
    assert len(written["recorded short"]().tokens) == 2
    recorded, plain = written["recorded"](), written["plain"]()
    assert recorded.tokens.ids == plain.tokens.ids
    traced = written["traced"]()
    assert traced.prediction.ids[-7:] == plain.tokens.ids
    assert set(traced.names()) == set(checkpoint.model.probes)
    assert len(recorded.steps) == 7
    assert set(recorded.steps[0].activations) == set(checkpoint.model.probes)
    decoder_probes = {name for name in checkpoint.model.probes if name.startswith("decoder.")}
    of_the_source = {name for name in decoder_probes if name.endswith(("cross_attention.key", "cross_attention.value"))}
    assert all(set(step.activations) == decoder_probes - of_the_source for step in recorded.steps[1:])


def test_a_ratio_is_the_median_of_the_rounds_ratios() -> None:
    times = Timings({"slow": (2.0, 30.0, 4.0, 50.0, 6.0), "base": (1.0, 10.0, 1.0, 10.0, 1.0)})
    assert times.ratio("slow", "base") == Ratio(median=4.0, lower=3.0, upper=5.0)
    assert times.ratio("slow", "base", scale=0.25).median == 1.0
    assert times.milliseconds("slow") == 6000.0


def test_every_function_runs_once_a_round_and_once_to_warm_up() -> None:
    calls = []
    times = time_interleaved({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=3, calls=2)
    assert sorted(calls) == ["a"] * 8 + ["b"] * 8
    assert all(set(calls[start : start + 4]) == {"a", "b"} for start in range(0, 16, 4))
    assert {name: len(values) for name, values in times.seconds.items()} == {"a": 3, "b": 3}
    with pytest.raises(ValueError, match="rounds is 1; at least 2"):
        time_interleaved({}, rounds=1)


def test_a_goal_is_met_or_missed_and_rounds_must_be_positive(capsys: pytest.CaptureFixture[str]) -> None:
    assert str(benchmark.Row("x", Ratio(0.8, 0.7, 0.9), goal=0.8)).endswith("goal ≤ 0.8: met")
    assert str(benchmark.Row("x", Ratio(0.81, 0.7, 0.9), goal=0.8)).endswith("goal ≤ 0.8: MISSED")
    with pytest.raises(SystemExit):
        benchmark.main(["--rounds", "0"])
    assert "--rounds is 0.0; it must be greater than 0" in capsys.readouterr().err


@pytest.mark.slow
def test_a_foreign_checkpoint_is_measured_beside_hugging_face(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    transformers = pytest.importorskip("transformers")
    from benchmarks import other_tools

    folder = other_tools._write_checkpoint(tmp_path, transformers, n_embd=24, n_head=2, n_layer=2)
    other_tools._compare_opening(folder, transformers, rounds=2)
    other_tools._compare_recorded_pass(folder, transformers, rounds=2, n_tokens=9)
    other_tools._compare_figures(folder, transformers, rounds=2, n_tokens=9)
    printed = capsys.readouterr().out
    assert printed.count("Hugging Face ") == 4 and printed.count("≤") >= 2
    assert "9 tokens" in printed and "memory of its trace" in printed
    assert "all 4 heads of 9 tokens as a page" in printed and "MB of HTML, 2 lines of code" in printed


# ---- pages ----------------------------------------------------------------------------------------------------------


def test_a_click_keeps_a_sentence_that_is_too_long_for_the_address(checkpoints_folder: Path) -> None:
    sentence = "a cat " * 700
    app = pages.open_page("attention", {"checkpoint": "tiny-gpt", "sentence": sentence})
    app.run()
    runs = pages.click_through(app)
    for change in pages.CLICKS:
        next(runs)
        focus = app.session_state["focus"]
        assert focus.sentence == sentence and all(getattr(focus, name) == value for name, value in change.items())


def test_a_long_text_is_nearly_as_long_as_requested(tiny_checkpoint) -> None:
    checkpoint = tiny_checkpoint("gpt")
    assert 160 < len(checkpoint.tokenizer.encode(pages.text_of(checkpoint, 200))) < 200


# ---- removed heads ---------------------------------------------------------------------------------------------------

SENTENCES = ["The cat sat on the mat.", "I love you."]


def test_zeroed_columns_of_w_o_remove_a_head_as_the_edit_does(tiny_checkpoint) -> None:
    tiny = tiny_checkpoint("translator")
    before = {name: value.clone() for name, value in tiny.model.state_dict().items()}
    original = greedy_texts(tiny.model, tiny.tokenizer, SENTENCES)
    shares = changed_shares(tiny, SENTENCES)
    assert shares.keys() == set(all_heads(tiny.config))
    for head in all_heads(tiny.config):
        edit = ablate_head(head.stack, layer=head.layer, kind=head.kind, head=head.head)
        edited = [transformer.trace(tiny, text, edits=[edit]) for text in SENTENCES]
        with without_head(tiny.model, head):
            removed = [
                transformer.trace(tiny, text, target=one.text) for text, one in zip(SENTENCES, edited, strict=True)
            ]
        for one, other in zip(removed, edited, strict=True):
            again = transformer.trace(tiny, other.sentence, target=other.text, edits=[edit])
            assert np.allclose(one.values("decoder.logits"), again.values("decoder.logits"), atol=1e-5)
    assert all(share in (0, 1 / 2, 1) for share in shares.values())
    assert greedy_texts(tiny.model, tiny.tokenizer, SENTENCES) == original
    assert all(torch.equal(value, before[name]) for name, value in tiny.model.state_dict().items())


def test_the_program_counts_heads_of_a_model_that_translates(tiny_checkpoint, tmp_path, monkeypatch, capsys) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"{text}\tOui.\n" for text in SENTENCES), encoding="utf-8")

    def run(kind: str) -> None:
        tiny = tiny_checkpoint(kind)
        transformer.save(tmp_path / kind, tiny.model, tiny.tokenizer)
        arguments = ["--data", str(tmp_path / "pairs.tsv"), "--checkpoint", str(tmp_path / kind), "--limit", "2"]
        monkeypatch.setattr(sys, "argv", ["removed_heads", *arguments])
        count_heads()

    run("translator")
    *heads, last = capsys.readouterr().out.splitlines()
    assert len(heads) == 12 and all(" head " in line for line in heads)
    assert last.endswith("of 12 heads change at least 10% of 2 translations")
    with pytest.raises(SystemExit):
        run("gpt")
    assert "only an encoder-decoder translates" in capsys.readouterr().err
