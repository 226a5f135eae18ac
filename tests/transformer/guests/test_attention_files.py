"""Files of attention maps: what is read, what is refused, and the recorders of the documentation."""

from __future__ import annotations

import re
import zipfile
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import transformer
from tests.attention_files import KINDS, SOURCE, TARGET, decoder_arrays, notes, random_weights, write
from tests.conftest import ROOT
from tests.test_documentation import PYTHON, what_a_reader_has
from transformer.errors import NotExposedError
from transformer.files.layout import config_of
from transformer.files.received_files import receive
from transformer.guests import attention_file
from transformer.heads.head_roles import sentence_roles
from transformer.runs.edits import ablate_head

BOTH = pytest.mark.parametrize("suffix", [".npz", ".safetensors"])


@BOTH
@pytest.mark.parametrize("kind", KINDS)
def test_every_number_and_token_is_read_back(tmp_path: Path, kind: str, suffix: str) -> None:
    arrays, text = KINDS[kind]()
    file = write(tmp_path / f"run{suffix}", arrays, text)
    checkpoint = transformer.load(file)
    trace = transformer.trace(checkpoint, "whatever is typed")
    assert config_of(file) == checkpoint.config
    found = {("cross" if view.kind == "cross" else view.stack, view.layer): view for view in trace.attention_views()}
    assert found.keys() == {(name, layer) for name, array in arrays.items() for layer in range(len(array))}
    for (name, layer), view in found.items():
        np.testing.assert_array_equal(view.weights, arrays[name][layer])
        assert np.array_equal(view.allowed, np.tri(5) if name == "decoder" else np.ones(view.allowed.shape))
        assert not view.weights.flags.writeable
        assert len(sentence_roles(view)) == view.n_heads
    if trace.source is not None:
        assert trace.source.displays == ("[CLS]", "·the", "·walk", "ing", "·<b>", "[SEP]")
    if trace.target is not None:
        assert trace.target.displays == ("<s>", "·my", "·cat", "·sat", "·<i>")


def test_a_mask_in_the_file_is_used(tmp_path: Path) -> None:
    arrays, text = decoder_arrays()
    arrays["decoder"][:, :, 3, 1] = 0.0  # 0 in every head, and yet the cell is allowed
    arrays["decoder.allowed"] = np.tri(5, dtype=bool)
    (view, *_) = transformer.trace(transformer.load(write(tmp_path / "a.npz", arrays, text)), "x").attention_views()
    assert view.allowed[3, 1] and not view.allowed[1, 3]


def test_nothing_can_be_computed_and_a_sentence_says_so(tmp_path: Path) -> None:
    checkpoint = transformer.load(write(tmp_path / "a.npz", *decoder_arrays()))
    trace = transformer.trace(checkpoint, "x")
    with pytest.raises(NotExposedError, match="nothing can be computed"):
        trace["decoder.layers.0.self_attention.query"]
    with pytest.raises(NotExposedError, match="nothing can be computed"):
        transformer.trace(checkpoint, "x", edits=[ablate_head("decoder", layer=0, kind="self", head=0)])
    with pytest.raises(NotExposedError, match="nothing can be computed"):
        _ = checkpoint.model.decoder


def test_a_file_written_by_columns_is_read(tmp_path: Path) -> None:
    arrays, text = decoder_arrays()
    by_columns = {"decoder": np.asfortranarray(arrays["decoder"].astype(np.float16))}
    (view, *_) = transformer.trace(transformer.load(write(tmp_path / "a.npz", by_columns, text)), "x").attention_views()
    np.testing.assert_allclose(view.weights, arrays["decoder"][0], atol=1e-3)


def test_an_upload_is_stored_and_opened_by_its_folder(tmp_path: Path) -> None:
    file = write(tmp_path / "my run.npz", *decoder_arrays())
    folder = receive({"My Run.npz": file.read_bytes()}, tmp_path / "received")
    assert [path.name for path in folder.iterdir()] == ["attention.npz"]
    checkpoint = transformer.load(folder)
    assert checkpoint.fingerprint == transformer.load(file).fingerprint
    assert transformer.trace(checkpoint, "x").target.text == "my cat sat <i>"
    with pytest.raises(transformer.CheckpointError, match="format None"):
        receive({"a.safetensors": b"\x02\0\0\0\0\0\0\0{}"}, tmp_path / "received")


GOOD = random_weights(3, 2, 5, 5, causal=True)
REFUSED = [
    ({"decoder": GOOD}, "no JSON", "is not valid JSON"),
    ({"decoder": GOOD}, '{"format": "glassformer-attention-2"}', "says format '.*-2'; .* says '.*-1'"),
    ({"decoder": GOOD}, "[1]", "format None"),
    ({"decoder": GOOD}, notes(source=TARGET), "arrays decoder and tokens for source"),
    ({"decoder": GOOD}, notes(source=SOURCE, target=TARGET), "arrays decoder and tokens for source, target"),
    ({}, notes(target=TARGET), "arrays – and tokens for target"),
    ({"decoder": GOOD}, notes(target=TARGET[:4]), r"decoder: .*\(2, 5, 5\).*\(4, 4\)"),
    ({"decoder": GOOD}, notes(target="text"), "target must be a list"),
    ({"decoder": GOOD}, notes(target=[]), "target must be a list"),
    ({"decoder": GOOD}, notes(target=[1, 2, 3, 4, 5]), "Token 0 is 1"),
    ({"decoder": GOOD * np.nan}, notes(target=TARGET), "NaN"),
    ({"decoder": GOOD, "weights": GOOD}, notes(target=TARGET), "unknown array 'weights'"),
    ({"decoder": GOOD, "decoder.allowed": np.ones((5, 4), bool)}, notes(target=TARGET), "allowed has shape"),
    ({"decoder": GOOD, "decoder.allowed": np.eye(5, dtype=bool)}, notes(target=TARGET), "allowed is False"),
    ({f"decoder{i}": GOOD[:0] for i in range(40)}, notes(target=TARGET), "arrays; at most 32"),
]  # fmt: skip


@BOTH
@pytest.mark.parametrize(("arrays", "text", "problem"), REFUSED, ids=range(len(REFUSED)))
def test_what_does_not_fit_is_refused_in_a_sentence(
    tmp_path: Path, arrays: dict, text: str, problem: str, suffix: str
) -> None:
    file = write(tmp_path / f"a{suffix}", arrays, text)
    with pytest.raises(transformer.CheckpointError, match=problem):
        transformer.load(file)


def test_layers_of_cross_attention_must_match_those_of_the_decoder(tmp_path: Path) -> None:
    arrays, text = KINDS["translator"]()
    arrays["cross"] = arrays["cross"][:2]
    with pytest.raises(transformer.CheckpointError, match=r"\(3, 2, 5, 5\) but cross has \(2, 2, 5, 6\)"):
        transformer.load(write(tmp_path / "a.npz", arrays, text))


class Runs:
    """An object whose pickle would create a file."""

    def __reduce__(self) -> tuple:
        return (Path.touch, (Path("/tmp/glassformer-was-run"),))


def test_a_pickle_in_an_archive_is_never_opened(tmp_path: Path) -> None:
    file = tmp_path / "a.npz"
    np.savez(file, decoder=np.array([Runs()], dtype=object), glassformer=notes(target=TARGET))
    with pytest.raises(transformer.CheckpointError, match="unexpected array 'decoder.npy'"):
        transformer.load(file)
    assert not Path("/tmp/glassformer-was-run").exists()


def header_of(shape: tuple[int, ...]) -> bytes:
    stream = BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return stream.getvalue()


@pytest.mark.parametrize("content", [header_of((10**6, 10**6)), header_of((2, 2)), b"", b"\x93NUMPY\x09\0", b"PK"])
def test_an_array_that_claims_more_than_it_has_is_refused(tmp_path: Path, content: bytes) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("decoder.npy", content)
    with pytest.raises(transformer.CheckpointError, match="a.npz"):
        transformer.load(tmp_path / "a.npz")


def test_an_archive_that_unpacks_to_more_than_the_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "a.npz", {"decoder": np.zeros((40, 40, 50, 50), np.float32)}, notes(target=TARGET * 10))
    assert file.stat().st_size < 100_000
    monkeypatch.setattr("transformer.families.memory.free_memory", lambda: 10_000_000)
    with pytest.raises(transformer.CheckpointError, match="needs 0.0 GB of memory"):
        transformer.load(file)


def test_an_upload_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformer.files.received_files.MOST_NUMBERS", 100)
    file = write(tmp_path / "a.npz", *decoder_arrays())
    with pytest.raises(transformer.CheckpointError, match="unpacks to 151 numbers; at most 100"):
        receive({"a.npz": file.read_bytes()}, tmp_path / "received")
    assert not list((tmp_path / "received").iterdir())


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.9, 0.999])
@BOTH
def test_a_file_that_is_cut_or_damaged_is_refused(tmp_path: Path, kept: float, suffix: str) -> None:
    file = write(tmp_path / f"a{suffix}", *decoder_arrays())
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises(transformer.CheckpointError):
        transformer.load(file)


def test_the_recorders_of_the_documentation_write_such_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = what_a_reader_has()
    text = (ROOT / "docs" / "attention_files.md").read_text(encoding="utf-8")
    for block in PYTHON.findall(text):
        assert len(block.splitlines()) <= 10
        exec(compile(block, "docs/attention_files.md", "exec"), names)
    (view,) = transformer.trace(transformer.load("run.npz"), "x").attention_views()
    assert view.weights.shape == (4, 3, 3) and view.stack == "encoder"
    of_gpt = transformer.trace(transformer.load("gpt.npz"), "x").attention_views()
    for view, expected in zip(of_gpt, names["outputs"].attentions, strict=True):
        np.testing.assert_array_equal(view.weights, expected[0].detach().numpy())


def test_the_hook_for_encoder_layers_records_their_weights() -> None:
    """The lines about ``nn.TransformerEncoderLayer`` in the documentation."""
    import torch

    text = (ROOT / "docs" / "attention_files.md").read_text(encoding="utf-8")
    lines = re.search(r"^(attention\.register_forward_pre_hook\(.*?^\))$", text, re.MULTILINE | re.DOTALL)[1]
    layer, weights = torch.nn.TransformerEncoderLayer(16, 4, dropout=0.0, batch_first=True).eval(), []
    attention = layer.self_attn
    exec(lines, {"attention": attention})
    attention.register_forward_hook(lambda module, inputs, output: weights.append(output[1]))
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        layer(torch.randn(1, 3, 16))
    finally:
        torch.backends.mha.set_fastpath_enabled(True)
    assert weights[0].shape == (1, 4, 3, 3)


def test_the_recorder_for_vllm_computes_the_weights_of_grouped_queries() -> None:
    """Its arithmetic; that vLLM passes these arguments to its attention layers is not tested."""
    import torch

    text = (ROOT / "docs" / "attention_files.md").read_text(encoding="utf-8")
    lines = re.search(r"^def record\(module, args, output.*?(?=^# )", text, re.MULTILINE | re.DOTALL)[0]
    names, found = {"torch": torch}, []
    exec(lines, names)
    n_tokens, n_heads, n_key_heads, width, scale = 7, 4, 2, 8, 0.3
    query, key = torch.randn(n_tokens, n_heads * width), torch.randn(n_tokens, n_key_heads * width)
    module = SimpleNamespace(num_heads=n_heads, num_kv_heads=n_key_heads, impl=SimpleNamespace(scale=scale))
    names["record"](module, (query, key), None, found)
    for head in range(n_heads):
        q = query[:, head * width : (head + 1) * width].numpy()
        k = key[:, (head // 2) * width : (head // 2 + 1) * width].numpy()
        powers = np.tril(np.exp(q @ k.T * scale))
        np.testing.assert_allclose(found[0][head], powers / powers.sum(-1, keepdims=True), atol=1e-3)


def test_the_documentation_names_the_format() -> None:
    assert f"`{attention_file.FORMAT}`" in (ROOT / "docs" / "attention_files.md").read_text(encoding="utf-8")
