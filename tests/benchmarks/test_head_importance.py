"""The benchmark of the importance map runs on tiny models and prints its rows."""

from __future__ import annotations

import math

from benchmarks import head_importance as benchmark


def test_every_kind_is_measured(capsys, tiny_checkpoint):
    names = ("translator", "gpt", "bert", "sentiment")
    rows = benchmark.measure([(name, tiny_checkpoint(name), "The cat sat.") for name in names], rounds=2)
    printed = capsys.readouterr().out
    assert [row.goal for row in rows] == [benchmark.GOAL, None] * 4
    assert all(0 < row.ratio.lower <= row.ratio.median <= row.ratio.upper < math.inf for row in rows)
    assert all(str(row) in printed for row in rows) and all(name in printed for name in names)


def test_both_shapes_have_48_heads():
    for shape in (benchmark.WRITER, benchmark.TRANSLATOR):
        assert len(benchmark.all_heads(shape.config)) == 48
