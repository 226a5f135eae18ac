"""``python -m transformer explain``: one file for every kind of model, with the library's numbers."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import transformer
from charts.toolkit.numbers import percent
from charts.toolkit.style import three_digits
from glassformer.commands import explain
from tests.foreign_checkpoints import FOREIGN
from tests.kinds_of_text import A_FEW
from tests.nights import FAMILIES_BY_DAY, by_day
from transformer.__main__ import main
from transformer.attribution.direct_logit_attribution import attribute
from transformer.heads.checkpoint_report import MAX_TRACED, MAX_WORDS, CheckpointReport, checkpoint_report
from transformer.heads.firing_examples import head_firings
from transformer.heads.head_roles import corpus_roles
from transformer.interventions.head_importance import head_importance
from transformer.predictions.answer_probabilities import prediction_rows
from ui.words.texts import page_text, use_language
from views.heads.report import report
from views.heads.role_words import corpus_role_text

KINDS = ("translator", "gpt", "bert", "sentiment")
SENTENCES = ("The cat sat on the mat.", "", "A dog sees the cat.", "The bird sings.")
HOSTILE = ("<script>alert(1)</script> cat", "</script><img src=x onerror=alert(1)>", "<pad> the cat", *A_FEW)


def check(page: str, found: CheckpointReport) -> None:
    """Check that there is no host, no third-party markup, every section, and the numbers of every table."""
    plain = re.sub(r'(?s)<script type="text/plain".*?</script>', "", page)
    assert set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+", plain)) <= {"http://www.w3.org"}
    assert re.findall(r'<section id="(\w+)"', page) == ["roles", "habits", "importance", "parts", "firings"]
    assert page.count("<script") == page.count("</script>") == 1 + 2 + page.count("<figure")
    said = html.unescape(re.sub(r"<[^>]+>", "|", plain))
    text = page_text("heads")
    for head in found.roles.heads:
        assert corpus_role_text(head, text) in said
    strongest = max(found.importance.values(), key=lambda one: one.kl)
    assert f"|{three_digits(strongest.kl)}|" in said and f"|{three_digits(strongest.change)}|" in said
    for share in sorted(found.parts.values(), key=lambda share: -share.size)[:3]:
        assert f"|{three_digits(share.size)}|" in said and f"|{three_digits(share.mean)}|" in said
    for habits in found.habits.values():
        assert f"|{text['card_kinds'][habits.main.kind]}|" in said and f"|{percent(habits.main.share)}|" in said
    assert page.count("<details>") == len(found.firings)
    for firings in found.firings.values():
        assert all(f"|{three_digits(firing.value)}  " in said for firing in firings)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_numbers_are_those_of_the_library(tiny_checkpoint: Callable, name: str) -> None:
    checkpoint = tiny_checkpoint(name)
    seen: list[tuple[int, int]] = []
    found = checkpoint_report(checkpoint, SENTENCES, progress=lambda *numbers: seen.append(numbers))
    check(report(found, sentence_file="<own>.txt"), found)
    with use_language("fr"):
        check(report(found, sentence_file="<own>.txt"), found)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen) and seen[-1][0] <= seen[-1][1]
    assert found.roles.digest == corpus_roles(checkpoint, SENTENCES).digest and found.roles.n_skipped == 1
    assert found.traced == (0, 2, 3)
    traces = [transformer.trace(checkpoint, SENTENCES[index]) for index in found.traced]
    measured = [head_importance(one).measured for one in traces]
    for rows in zip(*measured, strict=True):
        one = found.importance[rows[0].place]
        assert one.kl == pytest.approx(np.mean([row.kl for row in rows]))
        assert one.change == pytest.approx(np.mean([row.change for row in rows]))
    sums, sizes, n_words = dict.fromkeys(found.parts, 0.0), dict.fromkeys(found.parts, 0.0), 0
    for one in traces:
        question = prediction_rows(one)
        logits = np.atleast_2d(one.values(question.logits))
        for row, token in list(zip(question.rows, question.ids, strict=True))[:MAX_WORDS]:
            rival = max((id for id in range(logits.shape[1]) if id != token), key=lambda id: logits[row, id])
            place = None if question.logits == "classifier.logits" else row
            word = attribute(one, place, token=token, against=rival)
            n_words += 1
            for part, value in zip(word.parts, word.values, strict=True):
                sums[part] += value
                sizes[part] += abs(value)
    assert found.n_words == n_words
    for part, share in found.parts.items():
        assert share.mean == pytest.approx(sums[part] / n_words, abs=1e-6)
        assert share.size == pytest.approx(sizes[part] / n_words, abs=1e-6)
    fired = head_firings(checkpoint, SENTENCES, most=5)
    assert {head: [one.value for one in firings] for head, firings in fired.items()} == {
        head: [one.value for one in firings] for head, firings in found.firings.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", by_day(FOREIGN, FAMILIES_BY_DAY))
def test_other_families(families_folder: Path, name: str) -> None:
    found = checkpoint_report(transformer.load(families_folder / name), ["The cat sat.", "A dog sees the cat."])
    check(report(found, sentence_file="own.txt"), found)


def test_hostile_sentences_stay_text(tiny_checkpoint: Callable) -> None:
    found = checkpoint_report(tiny_checkpoint("gpt"), HOSTILE)
    page = report(found, sentence_file="</title><script>alert(2)</script>")
    check(page, found)
    assert "<script>alert" not in page and "<img" not in page
    assert len(found.traced) <= MAX_TRACED


def test_command_and_notebook(checkpoints_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    folder, own, out = str(checkpoints_folder / "tiny-bert"), tmp_path / "own.txt", tmp_path / "report.html"
    own.write_text("The cat sat on the mat.\nA dog sees the cat.\n", encoding="utf-8")
    options = ["explain", "--checkpoint", folder, "--sentences", str(own), "--out", str(out)]
    assert main(options) == 0
    written = out.read_text(encoding="utf-8")
    assert f"{len(written.encode()):,} bytes" in capsys.readouterr().out
    assert written == explain(folder, own), "in a notebook it is the same"
    assert main([*options, "--lang", "fr"]) == 0
    with use_language("fr"):
        assert page_text("heads")["report"]["firings"] in out.read_text(encoding="utf-8")
    for wrong, message in (("--lang", "no texts in"), ("--sentences", "There is no file")):
        assert main([*options, wrong, "xx"]) != 0
        assert message in capsys.readouterr().err
