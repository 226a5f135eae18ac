"""Steering equals a hand-written hook on the layer, and its directions are what they are said to be."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest
import torch

import transformer
from transformer.runs.directions import Steering, direction_of, ordinary_positions, random_direction
from transformer.runs.edit_specs import EditSpec, edits_from
from transformer.runs.tracing import add_predicted_output

SENTENCE, OTHER = "The cat sat on the mat.", "The dogs sleep in the garden."
STACKS = [("translator", "encoder"), ("translator", "decoder"), ("gpt", "decoder"), ("bert", "encoder")]
STACKS.append(("sentiment", "encoder"))


def logits_with_a_hook(trace: transformer.Trace, stack: str, layer: int, added: np.ndarray) -> np.ndarray:
    """Read the tokens of a trace with torch's own hook on the layer."""
    model = trace.checkpoint.model
    ids = [torch.tensor([read.ids]) for read in (trace.source, trace.target) if read is not None]

    def add(_module: torch.nn.Module, arguments: tuple) -> tuple:
        return (arguments[0] + torch.from_numpy(added).to(arguments[0]), *arguments[1:])

    handle = model.get_submodule(f"{stack}.layers.{layer}").register_forward_pre_hook(add)
    try:
        with torch.inference_mode():
            return model(*ids)[0].numpy()
    finally:
        handle.remove()


def logits(trace: transformer.Trace) -> np.ndarray:
    name = next(name for name in trace.names() if name.endswith(".logits") and not name.startswith("next_sentence"))
    return trace.values(name)


@pytest.mark.parametrize(("kind", "stack"), STACKS)
def test_it_is_what_a_hook_on_the_layer_does(tiny_checkpoint: Callable, kind: str, stack: str) -> None:
    checkpoint = tiny_checkpoint(kind)
    plain = transformer.trace(checkpoint, SENTENCE)
    target = None if plain.target is None else "Le chat dort."
    plain = transformer.trace(checkpoint, SENTENCE, target)
    edit = f"steer:{stack}.1.residual=-1.5 prompts {SENTENCE} ||| {OTHER}"
    assert str(EditSpec.parse(edit)) == edit
    direction = direction_of(checkpoint, stack, 1, Steering.parse(EditSpec.parse(edit).value))
    steered = transformer.trace(checkpoint, SENTENCE, target, edits=edits_from(checkpoint, [edit]))
    np.testing.assert_array_equal(logits(steered), logits_with_a_hook(plain, stack, 1, direction * -1.5))
    assert np.abs(logits(steered) - logits(plain)).max() > 1e-4
    again = transformer.trace(checkpoint, SENTENCE, target)
    assert logits(again).tobytes() == logits(plain).tobytes(), "nothing is left behind"
    nothing = transformer.trace(checkpoint, SENTENCE, target, edits=edits_from(checkpoint, [edit.replace("-1.5", "0")]))
    for name in plain.names():
        assert nothing.values(name).tobytes() == plain.values(name).tobytes(), name


def test_every_generated_token_is_steered(tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint("gpt")
    edits = edits_from(checkpoint, [f"steer:decoder.1.residual=8 random 3 like prompts {SENTENCE} ||| {OTHER}"])
    steered = transformer.trace(checkpoint, SENTENCE, edits=edits)  # generated with the cache, read at once
    rows = len(steered.target) - len(transformer.decode(checkpoint, SENTENCE, edits=edits).tokens)
    best = logits(steered).argmax(axis=-1)[rows:]
    assert best.tolist() == [token.id for token in steered.prediction][rows:]


@pytest.mark.parametrize(("kind", "stack"), STACKS)
def test_directions(tiny_checkpoint: Callable, kind: str, stack: str) -> None:
    checkpoint = tiny_checkpoint(kind)
    model = checkpoint.model
    reads = [
        transformer.trace(checkpoint, text, strategy=transformer.Greedy(1) if kind == "gpt" else None)
        for text in (SENTENCE, OTHER)
    ]
    means = []
    for read in reads:
        tokens = read.tokens(stack)
        kept = [token.index for token in tokens if not token.special] or range(len(tokens))
        assert ordinary_positions(read, stack) == list(kept)
        means.append(read.values(f"{stack}.layers.1.residual.in")[list(kept)].mean(axis=0))
    prompts = Steering(1.0, "prompts", (SENTENCE, OTHER))
    found = direction_of(checkpoint, stack, 1, prompts)
    np.testing.assert_allclose(found, means[0] - means[1], atol=1e-6)

    head = Steering(1.0, "head", (SENTENCE,), head=(0, "self", 1))
    attention = model.get_submodule(f"{stack}.layers.0.self_attention")
    context = torch.from_numpy(np.array(reads[0].values(f"{stack}.layers.0.self_attention.context")))
    alone = torch.zeros_like(context)
    alone[1] = context[1]
    with torch.inference_mode():
        output = attention.output_projection(attention.merge_heads(alone[None]))[0] - attention.output_projection.bias
    mean = output[ordinary_positions(reads[0], stack)].mean(dim=0)
    np.testing.assert_allclose(direction_of(checkpoint, stack, 1, head), mean, atol=1e-6)

    control = direction_of(checkpoint, stack, 1, prompts.control(7))
    assert np.linalg.norm(control) == pytest.approx(np.linalg.norm(found))
    np.testing.assert_array_equal(control, direction_of(checkpoint, stack, 1, prompts.control(7)))
    assert abs(control @ direction_of(checkpoint, stack, 1, prompts.control(8))) < 0.9 * (control @ control)


def test_a_word_is_its_row_of_the_output_matrix(tiny_checkpoint: Callable) -> None:
    gpt, sentiment = tiny_checkpoint("gpt"), tiny_checkpoint("sentiment")
    word = next(word for word in ("the", "is", "a") if len(gpt.tokenizer.encode(word)) == 1)
    row = gpt.model.decoder.vocabulary_projection.weight[gpt.tokenizer.encode(word)[0]]
    np.testing.assert_array_equal(direction_of(gpt, "decoder", 1, Steering(1.0, "word", (word,))), row.detach())
    names = sentiment.config.class_names
    found = direction_of(sentiment, "encoder", 0, Steering(1.0, "word", (names[1],)))
    np.testing.assert_array_equal(found, sentiment.model.classifier.projection.weight[1].detach())
    with pytest.raises(transformer.InputError, match="There is no class"):
        direction_of(sentiment, "encoder", 0, Steering(1.0, "word", ("no such class",)))


@pytest.mark.slow
def test_a_row_behind_another_layer_is_no_direction(families_folder: Path) -> None:
    bert = transformer.load(families_folder / "hf-bert")  # logits = norm(f(x W + b)) Eᵀ + c
    with pytest.raises(transformer.InputError, match="one more layer before its output matrix"):
        direction_of(bert, "encoder", 1, Steering(1.0, "word", ("the",)))
    gpt2 = transformer.load(families_folder / "hf-gpt2")
    assert direction_of(gpt2, "decoder", 1, Steering(1.0, "word", ("the",))).shape == (gpt2.config.d_model,)


def test_random_directions_favour_no_axis() -> None:
    vectors = np.stack([random_direction(64, 3.0, seed) for seed in range(400)])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 3.0)
    assert np.abs(vectors.mean(axis=0)).max() < 5 * 3.0 / np.sqrt(64 * 400)


def test_threads_steer_apart(tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint("translator")
    specs = [f"steer:encoder.1.residual={strength} prompts {SENTENCE} ||| {OTHER}" for strength in (-4, 0, 4, 9)]
    alone = [logits(transformer.trace(checkpoint, SENTENCE, edits=edits_from(checkpoint, [one]))) for one in specs]
    start = Barrier(len(specs))

    def run(spec: str) -> list[bytes]:
        start.wait()
        edits = edits_from(checkpoint, [spec])
        return [logits(transformer.trace(checkpoint, SENTENCE, edits=edits)).tobytes() for _ in range(4)]

    with ThreadPoolExecutor(len(specs)) as pool:
        for found, wanted in zip(pool.map(run, specs), alone, strict=True):
            assert set(found) == {wanted.tobytes()}


@pytest.mark.parametrize(
    "text",
    [
        "4 prompts I love it. ||| I hate it.",
        "-0.5 head 1.cross.3 of The cat = 3.\nYes.",
        "10 word Paris",
        "2 random 17 like word Paris",
    ],
)
def test_a_text_round_trips(text: str) -> None:
    assert str(Steering.parse(text)) == text
    assert Steering.parse(str(Steering.parse(text))) == Steering.parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steer:encoder.1.self=4 word Paris", "write it like steer:decoder.1.residual=4 prompts"),
        ("drop:encoder.1.residual", "write it like drop:encoder.0.feed_forward"),
        ("steer:encoder.*.residual=4 word Paris", "write it like"),
        ("steer:encoder.1.residual", "write it like"),
        ("steer:encoder.1.residual=inf word Paris", "'inf word Paris' does not fit"),
        ("steer:encoder.1.residual=four word Paris", "'four word Paris' does not fit"),
        ("steer:encoder.1.residual=4 prompts only one", "does not fit"),
        ("steer:encoder.1.residual=4 word Paris", "W_U reads the decoder"),
        ("steer:encoder.7.residual=4 prompts A. ||| B.", "there is no layer 7"),
        ("steer:encoder.1.residual=4 head 0.self.9 of A.", "there is no head 9"),
        ("steer:encoder.1.residual=4 head 0.cross.1 of A.", "has no cross-attention"),
    ],
)
def test_what_does_not_fit_is_refused(tiny_checkpoint: Callable, text: str, message: str) -> None:
    with pytest.raises(ValueError) as found:
        edits_from(tiny_checkpoint("translator"), [text])
    assert message in str(found.value)


def test_add_predicted_output_keeps_the_steered_class(tiny_checkpoint: Callable) -> None:
    checkpoint = tiny_checkpoint("sentiment")
    names = checkpoint.config.class_names
    for strength in (200, -200):
        edits = edits_from(checkpoint, [f"steer:encoder.1.residual={strength} word {names[0]}"])
        steered = transformer.trace(checkpoint, SENTENCE, edits=edits)
        assert add_predicted_output(steered).text == steered.text == names[int(logits(steered).argmax())]
