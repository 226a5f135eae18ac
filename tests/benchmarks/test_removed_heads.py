"""Removing a head by its weights gives the same output as the edit, and can be undone."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

import transformer
from benchmarks.removed_heads import changed_shares, main, without_head
from transformer.runs.edits import ablate_head
from transformer.runs.head_places import all_heads
from transformer.training.validation import greedy_texts

SENTENCES = ["The cat sat on the mat.", "It is raining.", "I love you."]


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
    assert all(share in (0, 1 / 3, 2 / 3, 1) for share in shares.values())
    assert greedy_texts(tiny.model, tiny.tokenizer, SENTENCES) == original
    assert all(torch.equal(value, before[name]) for name, value in tiny.model.state_dict().items())


def test_the_program_counts_heads(tiny_checkpoint, tmp_path, monkeypatch, capsys) -> None:
    tiny = tiny_checkpoint("translator")
    transformer.save(tmp_path / "mine", tiny.model, tiny.tokenizer)
    (tmp_path / "pairs.tsv").write_text("".join(f"{text}\tOui.\n" for text in SENTENCES), encoding="utf-8")
    arguments = ["--data", str(tmp_path / "pairs.tsv"), "--checkpoint", str(tmp_path / "mine"), "--limit", "2"]
    monkeypatch.setattr(sys, "argv", ["removed_heads", *arguments])
    main()
    *heads, last = capsys.readouterr().out.splitlines()
    assert len(heads) == len(all_heads(tiny.config)) and all(" head " in line for line in heads)
    assert last.endswith(f"of {len(heads)} heads change at least 10% of 2 translations")


def test_a_model_that_does_not_translate_is_refused(tiny_checkpoint, tmp_path, monkeypatch, capsys) -> None:
    tiny = tiny_checkpoint("gpt")
    transformer.save(tmp_path / "mine", tiny.model, tiny.tokenizer)
    monkeypatch.setattr(sys, "argv", ["removed_heads", "--data", "x.tsv", "--checkpoint", str(tmp_path / "mine")])
    with pytest.raises(SystemExit):
        main()
    assert "only an encoder-decoder translates" in capsys.readouterr().err
