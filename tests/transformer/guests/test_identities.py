"""Sums that hold in every guest, compared with its own code; docs/identities.md holds the results.

``python -m tests.transformer.guests.test_identities`` writes the table.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.foreign_checkpoints import any_checkpoint
from tests.nights import by_day
from tests.transformer.guests.tiny_guests import GUESTS, MORE
from tests.transformer.guests.tiny_image_guests import IMAGE_GUESTS
from transformer import Checkpoint, load
from transformer.errors import NotExposedError
from transformer.guests.agreement import _their_pass
from transformer.guests.trial_pass import trial_inputs
from transformer.probes import record

pytest.importorskip("transformers")
TABLE = Path(__file__).resolve().parents[3] / "docs" / "identities.md"
COLUMNS = ("maps", "streams", "values", "sums", "logits")
TYPES = (*GUESTS, *MORE, *IMAGE_GUESTS)
BY_DAY = ("phi", "bloom", "gpt_oss", "modernbert", "mbart", "deberta", "gemma3_text", "granitemoeshared", "t5", "vit")


def equals_theirs(ours: Tensor, theirs: Tensor) -> bool:
    """Whether two tensors of the same shape differ by rounding only."""
    bound = 2e-5 * float(theirs.abs().max()) + 1e-7
    return ours.shape == theirs.shape and float((ours - theirs).abs().max()) <= bound


def identities(checkpoint: Checkpoint) -> dict[str, str]:
    """Return "●" for each identity that holds on recorded numbers, or why a guest does not show its parts."""
    model: Any = checkpoint.model
    given = trial_inputs(model.config, model.network)[-1]
    theirs = _their_pass(model, given)
    with torch.inference_mode(), record() as recording:
        ends = model.stack_outputs(given)
        logits = model.read_out(list(ends.values())[-1], given.get("input_ids", torch.zeros(1, 1, dtype=torch.long)))
    seen, found = recording.tensors, dict.fromkeys(COLUMNS, "●")
    for stack, end in ends.items():
        front = f"{stack}_" if len(ends) == 2 else ""
        layers = range(len(getattr(model, stack).layers))
        for layer in layers:
            name = f"{stack}.layers.{layer}"
            kinds = {"self": f"{front}attentions"} | ({"cross": "cross_attentions"} if front == "decoder_" else {})
            for kind, maps in kinds.items():
                weights, value, context = (
                    seen[f"{name}.{kind}_attention.{e}"] for e in ("weights", "value", "context")
                )
                assert equals_theirs(weights, theirs[maps][layer])
                assert equals_theirs(weights @ value, context)
            assert equals_theirs(seen[f"{name}.residual.in"], theirs[f"{front}hidden_states"][layer])
            found["sums"] = _sum_of(model, seen, name, kinds) if found["sums"] == "●" else found["sums"]
        last = seen[f"{stack}.layers.{len(layers) - 1}.residual.out"]
        states = theirs[f"{front}hidden_states"]
        assert equals_theirs(last, states[-1]) or equals_theirs(end, states[-1])
    found["logits"] = "–" if model.config.pooling else _logits_of(model, stack, last, logits)
    return found


def _sum_of(model: Any, seen: dict[str, Tensor], layer: str, kinds: dict[str, str]) -> str:
    """Check input + attention (+ cross-attention) + feed-forward = output for one layer."""
    updates = [f"{layer}.{kind}_attention" for kind in kinds] + [f"{layer}.feed_forward"]
    stages = [f"{layer}.residual.after_{kind}_attention" for kind in kinds] + [f"{layer}.residual.out"]
    if (why := model.not_exposed(stages[0])) is not None:
        return _reason(why)
    total = seen[f"{layer}.residual.in"]
    for update, stage in zip(updates, stages, strict=True):
        normed = f"{update}_output_norm.output"
        after = total + seen[normed if normed in seen else f"{update}.output"]
        if model.config.norm == "post":
            assert equals_theirs(seen[f"{update}_norm.input"], after)
            assert equals_theirs(seen[f"{update}_norm.output"], seen[stage])
        else:
            assert equals_theirs(after, seen[stage])
        total = seen[stage]
    return "●"


def _logits_of(model: Any, stack: str, last: Tensor, logits: Tensor) -> str:
    """Check that the described norm and head compute the logits from the output of the last layer."""
    described = getattr(model, stack)
    try:
        with torch.inference_mode():
            final = last if described.final_norm is None else described.final_norm(last)
            head = model.classifier if model.config.n_classes else described.vocabulary_projection
            shown = head(final)
    except NotExposedError as error:
        return _reason(error)
    assert equals_theirs(shown, logits)
    return "●"


def _reason(error: Exception) -> str:
    return str(error).split("does not expose ")[1].removesuffix(".")


def table_of(found: dict[str, dict[str, str]]) -> Iterator[str]:
    """Yield the lines of the table, with one letter per reason."""
    reasons = sorted({said for row in found.values() for said in row.values() if len(said) > 1})
    letters = {said: "abcdefghijklmnopqrstuvwxyz"[place] for place, said in enumerate(reasons)}
    yield f"| `model_type` | {' | '.join(COLUMNS)} |"
    yield "|---|" + ":-:|" * len(COLUMNS)
    for kind, row in found.items():
        yield f"| `{kind}` | {' | '.join(letters.get(row[column], row[column]) for column in COLUMNS)} |"
    yield ""
    yield from (f"- {letter}: {said}." for said, letter in letters.items())


@pytest.mark.parametrize("kind", by_day(TYPES, BY_DAY))
def test_what_is_recorded_adds_up_as_in_its_own_code(kind: str, tmp_path: Path) -> None:
    found = identities(load(any_checkpoint(kind, tmp_path)))
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    reasons = {line[2]: line[5:].removesuffix(".") for line in lines if line.startswith("- ")}
    row = next(line for line in lines if line.startswith(f"| `{kind}` |"))
    documented = [reasons.get(cell.strip(), cell.strip()) for cell in row.split("|")[2:-1]]
    assert dict(zip(COLUMNS, documented, strict=True)) == found


def test_the_table_has_every_type() -> None:
    rows = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")][1:]
    assert [row.split("`")[1] for row in rows] == list(TYPES)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        rows = {kind: identities(load(any_checkpoint(kind, Path(temporary)))) for kind in TYPES}
    before = TABLE.read_text(encoding="utf-8").split("| `model_type`")[0]
    TABLE.write_text(before + "\n".join(table_of(rows)) + "\n", encoding="utf-8")
    sys.exit(0)
