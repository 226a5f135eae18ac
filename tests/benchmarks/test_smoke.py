"""The benchmark runs on tiny shapes, compares what it claims to compare, and prints all rows."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import forward_and_decode as benchmark
from benchmarks.interleaved import Ratio, Timings, time_interleaved
from benchmarks.workload import MEDIUM, SMALL, Shape, random_checkpoint

TINY = {"vocabulary_size": 300, "d_model": 16, "n_heads": 2, "d_ff": 24, "max_length": 24}
WRITER = Shape("tiny writer", replace(SMALL.config, **TINY, n_decoder_layers=1), 5)
TRANSLATOR = Shape("tiny translator", replace(MEDIUM.config, **TINY, n_encoder_layers=1, n_decoder_layers=2), 6)
FORWARD = (
    "everything traced ÷ plain fused forward",
    "… and every array read ÷ plain",
    "readable path, nothing recorded ÷ plain",
)
FORWARD_PEERS = (
    "plain ÷ Hugging Face SDPA",
    "everything traced ÷ Hugging Face SDPA",
    "everything traced ÷ Hugging Face eager, output_attentions",
    "Hugging Face eager, output_attentions ÷ SDPA",
)
DECODING_PEERS = (
    "everything recorded ÷ Hugging Face generate",
    "written, then traced in one pass ÷ Hugging Face generate",
    "plain ÷ Hugging Face generate",
)
DECODING = (
    "everything recorded ÷ plain",
    "time per token, 4 ÷ 2 tokens, everything recorded",
    "time per token, 4 ÷ 2 tokens, plain",
)


def measured(capsys: pytest.CaptureFixture[str]) -> tuple[list[benchmark.Row], str]:
    rows = benchmark.measure([WRITER, TRANSLATOR], forward_rounds=2, decoding_rounds=2, n_short=2, n_long=4)
    return rows, capsys.readouterr().out


def test_all_rows_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    rows, printed = measured(capsys)
    assert [row.what for row in rows] == [*FORWARD, *FORWARD_PEERS, *DECODING_PEERS, *DECODING] * 2
    assert all(0 < row.ratio.lower <= row.ratio.median <= row.ratio.upper < math.inf for row in rows)
    assert all(str(row) in printed for row in rows)
    assert "tiny writer" in printed
    assert "tiny translator" in printed


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


def test_a_goal_is_met_or_missed() -> None:
    assert str(benchmark.Row("x", Ratio(0.8, 0.7, 0.9), goal=0.8)).endswith("goal ≤ 0.8: met")
    assert str(benchmark.Row("x", Ratio(0.81, 0.7, 0.9), goal=0.8)).endswith("goal ≤ 0.8: MISSED")


def test_rounds_must_be_positive(capsys: pytest.CaptureFixture[str]) -> None:
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
    assert printed.count("Hugging Face ") == 4 and printed.count("≤") >= 3
    assert "9 tokens" in printed and "memory of its trace" in printed
    assert "all 4 heads of 9 tokens as a page" in printed and "MB of HTML, 2 lines of code" in printed
