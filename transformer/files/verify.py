"""Comparison of a third-party checkpoint as opened here with Hugging Face's own code."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer.disk.gguf_file import GgufFile, is_gguf
from transformer.disk.tensor_files import TensorFile
from transformer.families.foreign_folder import FAMILIES, fields_of
from transformer.families.gguf import GgufWeights
from transformer.families.weights import plain_name, weight_files
from transformer.files.checkpoints import Checkpoint
from transformer.probes import record

LENGTHS = (1, 2, 3, 5, 9, 17, 33, 64)
TOLERANCE = 1e-4  # tolerance for a sum of thousands of products in another order


@dataclass(frozen=True)
class Comparison:
    """Largest differences for one text of ``length`` tokens, and the probe of the worst attention map.

    ``logits`` are those of the sentence vector for an encoder without a head, and for an image without one of the last
    vectors. ``pixels`` is None for a model that reads text.
    """

    length: int
    logits: float
    attention: float
    map: str
    pixels: float | None = None

    @property
    def largest(self) -> float:
        """The largest of all differences."""
        return max(self.logits, self.attention, self.pixels or 0.0)

    @property
    def agrees(self) -> bool:
        """Whether all differences are within the tolerance."""
        return self.largest <= TOLERANCE


def verify(
    checkpoint: Checkpoint, *, lengths: tuple[int, ...] = LENGTHS, progress: Callable[[int, int], None] | None = None
) -> tuple[Comparison, ...]:
    """Compare logits and every attention map with Hugging Face's (eager), on random texts.

    This needs the package ``transformers``; no code of the checkpoint is run.

    Raises:
        ModuleNotFoundError: If the package is missing.
        ValueError: If the checkpoint is our own, so that there is nothing to compare it with.
    """
    theirs, found = their_model(checkpoint), []
    known = [length for length in lengths if length <= checkpoint.config.max_length]
    for done, length in enumerate(known):
        if progress is not None:
            progress(done, len(known))
        found.append(_compare(checkpoint, theirs, length))
    return tuple(found)


def their_model(checkpoint: Checkpoint) -> Any:
    """Return the model of a checkpoint as Hugging Face's own code opens it, with eager attention.

    Raises:
        ModuleNotFoundError: If ``transformers`` is missing.
        ValueError: If the checkpoint is our own, or an adapter merged into its base.
    """
    if not checkpoint.foreign:
        raise ValueError(f"{checkpoint.name} is a checkpoint of this project; there is nothing to compare it with")
    if checkpoint.adapter:
        raise ValueError(f"{checkpoint.name} is an adapter merged into its base; verify the base: {checkpoint.path}")
    import transformers

    fields = fields_of(checkpoint.path)
    names = [name for name in fields.get("architectures") or [] if hasattr(transformers, str(name))]
    kind = "SequenceClassification" if checkpoint.config.n_classes else _AUTO[checkpoint.config.kind]
    model_class = getattr(transformers, names[0] if names else f"AutoModelFor{kind}")
    # An encoder of sentences needs no head, whatever class its config names: the file holds none.
    if checkpoint.config.encodes_sentences and not checkpoint.config.reads_images:
        model_class = transformers.AutoModel
    if is_gguf(checkpoint.path):
        return _of_gguf(model_class, checkpoint, fields)
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()  # hides its table of unused names, which ``Checkpoint.unread`` has
    try:
        config = transformers.AutoConfig.from_pretrained(checkpoint.path, local_files_only=True)
        if not issubclass(model_class, transformers.PreTrainedModel):  # an Auto class takes a folder, but no tensors
            with torch.device("meta"):
                model_class = type(model_class.from_config(config))
        given = {"attn_implementation": "eager", "dtype": torch.float32}
        return model_class.from_pretrained(None, config=config, state_dict=_tensors(checkpoint.path), **given).eval()
    finally:
        transformers.logging.set_verbosity(before)


def _tensors(folder: Path) -> dict[str, Tensor]:
    """Return all tensors under the names in their files.

    Hugging Face's library would map the files into memory: truncating one would end the server.
    """
    found: dict[str, Tensor] = {}
    for file in weight_files(folder):
        with TensorFile(file) as weights:
            found |= {name: weights.read(name) for name in weights.tensors}
    return found


def _of_gguf(model_class: Any, checkpoint: Checkpoint, fields: dict) -> Any:
    """Return Hugging Face's model with the tensors of a GGUF file.

    It is not opened as transformers does: version 5.24 ignores caps, factors and the width of heads.
    """
    import transformers

    scaling = fields.get("rope_scaling") or {}
    given = {name: value for name, value in fields.items() if name != "model_type" and value is not None}
    if scaling.get("rope_type") == "factors":
        del given["rope_scaling"]
    config = transformers.AutoConfig.for_model(fields["model_type"], **given)
    theirs = model_class.from_config(config, attn_implementation="eager", dtype=torch.float32).eval()
    weights = GgufWeights(GgufFile(checkpoint.path), fields)
    prefixes = FAMILIES[fields["model_type"]].prefixes
    stored = {name: plain_name(name, prefixes) for name in theirs.state_dict()}
    stored |= {
        name: "embed_out.weight" for name in stored if name == "lm_head.weight" and "embed_out.weight" in weights
    }
    theirs.load_state_dict(
        {name: weights.read(plain) for name, plain in stored.items() if plain in weights}, strict=False
    )
    theirs.tie_weights()
    if scaling.get("rope_type") == "factors":
        for module in theirs.modules():
            if hasattr(module, "inv_freq"):
                module.inv_freq = checkpoint.config.rotary[0].frequencies(1)
    return theirs


_AUTO = {"encoder-decoder": "Seq2SeqLM", "decoder-only": "CausalLM", "encoder-only": "MaskedLM"}


def _compare(checkpoint: Checkpoint, theirs: Any, length: int) -> Comparison:
    inputs = _texts(checkpoint, length)
    asked = dict(zip(("input_ids", "decoder_input_ids"), inputs, strict=False))
    with torch.inference_mode(), record() as recording:
        logits = checkpoint.model(*inputs)
        expected = theirs(**asked, attention_mask=torch.ones_like(inputs[0]), output_attentions=True)
    if checkpoint.config.encodes_sentences:
        hidden = expected.last_hidden_state  # [batch, position, model]
        ways = {"mean": hidden.mean(dim=1), "first": hidden[:, 0], "max": hidden.amax(dim=1)}
        wanted = ways[checkpoint.config.pooling]
    else:
        wanted = expected.get("logits", expected.get("prediction_logits"))
    differences = {name: _largest(recording.tensors[name], weights) for name, weights in _maps(checkpoint, expected)}
    worst = max(differences, key=differences.__getitem__)
    return Comparison(length, _largest(logits, wanted), differences[worst], worst)


def _texts(checkpoint: Checkpoint, length: int) -> list[Tensor]:
    """Return random ids of text, [1, ``length``] per stack; a decoder beside an encoder begins as usual."""
    generator = torch.Generator().manual_seed(length)
    words = torch.tensor([id for id in range(checkpoint.config.vocabulary_size) if id not in checkpoint.special])
    draw = [words[torch.randint(len(words), (1, length), generator=generator)] for _ in range(2)]
    if checkpoint.config.kind != "encoder-decoder":
        return draw[:1]
    draw[1][0, 0] = checkpoint.framing.answer[0]
    return draw


def _maps(checkpoint: Checkpoint, expected: Any) -> Iterator[tuple[str, Tensor]]:
    if checkpoint.config.kind != "encoder-decoder":
        stack = "encoder" if checkpoint.config.has_encoder else "decoder"
        named = {f"{stack}.layers.{{}}.self_attention.weights": expected.attentions}
    else:
        named = {
            "encoder.layers.{}.self_attention.weights": expected.encoder_attentions,
            "decoder.layers.{}.self_attention.weights": expected.decoder_attentions,
            "decoder.layers.{}.cross_attention.weights": expected.cross_attentions,
        }
    for name, layers in named.items():
        for index, weights in enumerate(layers):
            yield name.format(index), weights


def _largest(ours: Tensor, theirs: Tensor) -> float:
    return float((ours - theirs).abs().max())
