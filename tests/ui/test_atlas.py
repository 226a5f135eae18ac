"""``python -m transformer atlas``: one file with all heads' cards, and the same numbers as data files."""

from __future__ import annotations

import csv
import html
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import transformer
from charts.toolkit.numbers import percent
from glassformer.notebook import Document, atlas
from tests.kinds_of_text import A_FEW
from transformer.__main__ import main
from transformer.heads.head_atlas import N_EXAMPLES, N_INTERVALS, head_habits, row
from ui.words.texts import page_text

SENTENCES = ("The old man told us a long story.", "A story, a long story!", "She saw him.", "The man saw the old man.")
KINDS = ("translator", "gpt", "bert", "sentiment")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    file = tmp_path / "own.txt"
    file.write_text("\n".join(SENTENCES), encoding="utf-8")
    return file


@pytest.mark.parametrize("name", KINDS)
def test_files_hold_what_was_counted(checkpoints_folder: Path, tmp_path: Path, own: Path, name: str, capsys) -> None:
    folder, out = checkpoints_folder / f"tiny-{name}", tmp_path / "out"
    assert main(["atlas", "--checkpoint", str(folder), "--text", str(own), str(out)]) == 0
    assert "atlas.html" in capsys.readouterr().out
    found = head_habits(transformer.load(folder), SENTENCES)
    with (out / "heads.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(found)
    for read, (head, habits) in zip(rows, found.items(), strict=True):
        assert (read["stack"], read["kind"], int(read["layer"]), int(read["head"])) == tuple(head)
        assert read["habit"] == habits.main.kind and float(read["share"]) == habits.main.share
        assert (read.get("share_previous", "") == "") == (head.kind == "cross")
    attentions = {(head.stack, head.kind) for head in found}
    for stack, kind in attentions:
        place = out / f"{stack}_{kind}" if len(attentions) > 1 else out
        config, points = (json.loads((place / f"{file}.json").read_text()) for file in ("config", "scatter_data"))
        own_heads = [head for head in found if (head.stack, head.kind) == (stack, kind)]
        assert config["attention"] == [stack, kind] and len(points) == len(own_heads)
        for point, head in zip(points, own_heads, strict=True):
            assert point == json.loads(json.dumps(row(found[head])))
            told = json.loads((place / "heads" / f"L{head.layer}H{head.head}.json").read_text(encoding="utf-8"))
            assert set(told["intervals"]) == set(found[head].intervals)
            for name_of, intervals in told["intervals"].items():
                assert len(intervals) == N_INTERVALS
                for read, interval in zip(intervals, found[head].intervals[name_of], strict=True):
                    assert [one["value"] for one in read["examples"]] == [one.value for one in interval.examples]
                    assert all(one["query"] < len(one["tokens"]) for one in read["examples"])
            assert all(len(one["examples"]) <= N_EXAMPLES for one in told["kinds"])
    check((out / "atlas.html").read_text(encoding="utf-8"), found)


def check(page: str, found: dict) -> None:
    """Check that the file has no host, no third-party markup, and a card with examples for every head."""
    plain = re.sub(r'(?s)<script type="text/plain".*?</script>', "", page)
    assert set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+", plain)) <= {"http://www.w3.org"}
    assert page.count("<details>") == len(found)
    assert page.count("<script") == page.count("</script>") == 1 + 2 + page.count("<figure")
    said, kinds = html.unescape(re.sub(r"<[^>]+>", "", plain)), page_text("heads")["card_kinds"]
    for habits in found.values():
        assert f"in {percent(habits.main.share)} of" in said
        assert f"{kinds[habits.main.kind]}, {percent(habits.main.share)}" in said


def test_what_is_no_input_is_a_sentence(checkpoints_folder: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "out"
    begin = ["atlas", "--checkpoint", str(checkpoints_folder / "tiny-gpt")]
    assert main([*begin, "--text", "missing.txt", str(out)]) == 2 and "missing.txt" in capsys.readouterr().err
    for content in ("Le café.".encode("latin-1"), b"zero\0byte", b" \n"):
        (tmp_path / "bad.txt").write_bytes(content)
        assert main([*begin, "--text", str(tmp_path / "bad.txt"), str(out)]) == 2
        assert "bad.txt" in capsys.readouterr().err
    assert main([*begin, "--limit", "0", str(out)]) == 2 and "at least 1" in capsys.readouterr().err
    assert main([*begin, "--lang", "xx", str(out)]) == 2 and "no texts" in capsys.readouterr().err
    assert not out.exists()


def test_in_a_notebook(tiny_checkpoint: Callable, tmp_path: Path) -> None:
    checkpoint = tiny_checkpoint("gpt")
    page = atlas(checkpoint, [*SENTENCES, *A_FEW])
    assert isinstance(page, Document) and page.save(tmp_path / "atlas.html").read_text(encoding="utf-8") == page
    shown = page._repr_html_()
    assert shown.count("<iframe") == 1 and "<script" not in shown
    check(page, head_habits(checkpoint, [*SENTENCES, *A_FEW]))
    assert "<h2>Toutes les têtes</h2>" in atlas(checkpoint, SENTENCES, language="fr")
