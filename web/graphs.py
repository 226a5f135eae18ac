"""A checkpoint as ONNX graphs whose outputs are the arrays that the figures draw.

One graph per stack. Whatever a figure needs (the threads of the living picture, norms, the strongest units, the tokens
that are listed at each position) is computed inside the graph, so that the browser only packs. The weights stay in the
checkpoint's own ``model.safetensors``: the graphs point into it, and both graphs of a translator share its token table.

The inputs besides the tokens are ``<stack>.<kind>.heads`` [layer, head], a factor for what each head contributes (1
changes nothing, 0 removes the head), and ``chosen`` [1, position], the token or class whose probability is wanted at
each position; −1 is the most likely one.
"""

from __future__ import annotations

import json
import logging
import struct
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from transformer.files.checkpoints import Checkpoint
from transformer.predictions.answer_probabilities import MAX_CLASSES
from transformer.predictions.living_picture_numbers import CANDIDATES, UNITS, threads
from transformer.probes import Edit, Recording, record
from transformer.runs.attention_view import is_punctuation

if TYPE_CHECKING:
    import onnx

WEIGHTS = "model.safetensors"
STEP_CANDIDATES = 10  # number of tokens that a step of decoding lists
_EXAMPLE = {"encoder": 7, "decoder": 5}  # the exporter would treat a length of 1 as a constant
_INSIDE = ("query", "key", "value", "context", "scores")
_IN_THREADS = ("input", "normalized", "output")


@dataclass(frozen=True)
class Graph:
    """One stack: the graph's bytes, and the names of its inputs and outputs, in order."""

    stack: str
    onnx: bytes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def graphs_of(checkpoint: Checkpoint, folder: Path) -> tuple[Graph, ...]:
    """Export every stack of ``checkpoint``, whose ``model.safetensors`` is in ``folder``.

    Raises:
        ValueError: The model is third-party, or its width is not a multiple of the number of threads.
    """
    config = checkpoint.config
    if config.kind not in ("encoder-decoder", "decoder-only", "encoder-only"):
        raise ValueError(f"{checkpoint.name} is of the kind {config.kind!r}, which the web page cannot run")
    stored = _stored_tensors(folder / WEIGHTS)
    stacks = [stack for stack in ("encoder", "decoder") if getattr(config, f"has_{stack}")]
    return tuple(_graph(checkpoint, stack, stored) for stack in stacks)


class StackGraph(nn.Module):
    """One pass of one stack, which returns the arrays of the figures instead of only the residual stream."""

    def __init__(self, checkpoint: Checkpoint, stack: str) -> None:
        super().__init__()
        self.model, self.config, self.stack = checkpoint.model, checkpoint.config, stack
        self.checkpoint = checkpoint
        layers = getattr(self.model, stack).layers
        self.n_layers = len(layers)
        self.kinds = ("self", "cross") if getattr(layers[0], "cross_attention", None) is not None else ("self",)
        # The means that ``threads`` computes, as a matrix: [channel, thread].
        self.register_buffer("means", torch.tensor(threads(np.eye(self.config.d_model)), dtype=torch.float32))
        never = torch.zeros(self.config.n_classes or self.config.vocabulary_size)
        if self.config.has_decoder:
            never[list(checkpoint.framing.never)] = -torch.inf
        self.register_buffer("never", never)
        self.register_buffer("flags", _token_flags(checkpoint))

    @property
    def reads_memory(self) -> bool:
        """Whether this stack attends to the output of another one."""
        return "cross" in self.kinds

    @property
    def projects(self) -> bool:
        """Whether this stack ends with a prediction."""
        return self.stack == "decoder" or not self.config.has_decoder

    def input_names(self) -> tuple[str, ...]:
        """Return the inputs in the order of ``forward``'s arguments."""
        heads = [f"{self.stack}.{kind}.heads" for kind in self.kinds]
        chosen = ["chosen"] if self.projects else []
        return (f"{self.stack}.ids", *(["memory", "sinks"] if self.reads_memory else []), *chosen, *heads)

    def examples(self) -> tuple[tuple[Tensor, ...], tuple[Any, ...]]:
        """Return example inputs for the export, and which of their axes have a variable length."""
        own, other = _EXAMPLE[self.stack], _EXAMPLE["encoder"]
        most = self.config.max_length - 1
        position = torch.export.Dim(f"{self.stack}_position", min=2, max=most)
        if self.config.reads_images:  # every image has the same number of patches
            own, position = self.config.max_length, torch.export.Dim.STATIC
        memory = torch.export.Dim("memory_position", min=2, max=most)
        ids = torch.arange(4, 4 + own)[None]
        inputs: list[Tensor] = [ids]
        dynamic: list[Any] = [{1: position}]
        if self.reads_memory:
            inputs += [torch.randn(1, other, self.config.d_model), torch.zeros(other, dtype=torch.bool)]
            dynamic += [{1: memory}, {0: memory}]
        if self.projects:
            inputs.append(ids[:, :1] - ids[:, :1] if self.config.n_classes else ids.clone())
            dynamic.append(None if self.config.n_classes else {1: position})
        for _kind in self.kinds:
            inputs.append(torch.ones(self.n_layers, self.config.n_heads))
            dynamic.append(None)
        return tuple(inputs), (tuple(dynamic),)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Return the values of ``outputs``, because an exported graph returns tensors without names."""
        named = dict(zip(self.input_names(), inputs, strict=True))
        return tuple(self.outputs(named).values())

    def outputs(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return every array by its name in the figures' payload."""
        ids = inputs[f"{self.stack}.ids"]
        with record(self._edits(inputs)) as recording:
            if self.stack == "encoder":
                hidden = self.model.encode(ids)
            elif self.reads_memory:
                memory = inputs["memory"]
                hidden = self.model.decoder(ids, memory, torch.ones_like(memory[..., 0], dtype=torch.bool))
            else:
                hidden = self.model.decode(ids)
            if not self.projects:
                logits = None
            elif self.config.n_classes:
                logits = self.model.classify(hidden, ids)[:, None]
            else:
                logits = self.model.project(hidden)
        found = dict(self._arrays(recording))
        sinks = {"self": _sinks(self.flags[:, ids[0]]), "cross": inputs.get("sinks")}
        for kind in self.kinds:
            weights, allowed = (found[f"{self.stack}.{kind}.{part}"] for part in ("weights", "allowed"))
            found[f"strongest.{self.stack}.{kind}"] = _strongest_rows(weights, allowed, sinks[kind], kind)
            if self.stack == "decoder":
                found[f"mean.{self.stack}.{kind}"] = _in_uint16(weights.mean(1))
        if self.projects:
            found |= self._predictions(logits[0], inputs["chosen"][0])
        else:
            found |= {"memory": hidden, "sinks": sinks["self"]}
        return found

    def _edits(self, inputs: dict[str, Tensor]) -> Iterator[Edit]:
        for kind in self.kinds:
            for layer, factor in enumerate(inputs[f"{self.stack}.{kind}.heads"]):
                name = f"{self.stack}.layers.{layer}.{kind}_attention.context"
                yield Edit(name, lambda context, factor=factor: context * factor[None, :, None, None])

    def _arrays(self, recording: Recording) -> Iterator[tuple[str, Tensor]]:
        tensors, stack = recording.tensors, self.stack
        layers = [f"{stack}.layers.{layer}" for layer in range(self.n_layers)]
        parts = [*(f"{kind}_attention" for kind in self.kinds), "feed_forward"]

        def values(name: str) -> Tensor:
            tensor = tensors[name]
            return tensor[0] if tensor.dim() > len(self.model.probes[name].axes) else tensor  # without the batch axis

        def vectors(name: str) -> Tensor:
            return values(name) @ self.means

        stream, update, growth = [vectors(f"{layers[0]}.residual.in")], [], []
        for layer in layers:
            before = values(f"{layer}.residual.in")
            for part in parts:
                after = values(f"{layer}.residual.{'out' if part == 'feed_forward' else f'after_{part}'}")
                added = values(f"{layer}.{part}.output")
                lengths = before.norm(dim=-1)
                ratio = added.norm(dim=-1) / torch.where(lengths > 0, lengths, 1.0)
                growth.append(torch.where(lengths > 0, ratio, 0.0))
                update.append(added @ self.means)
                stream.append(after @ self.means)
                before = after
        yield f"{stack}.stream", torch.stack(stream)
        yield f"{stack}.update", torch.stack(update)
        yield f"{stack}.growth", torch.stack(growth)
        yield f"{stack}.token", vectors(f"{stack}.embedding.token")
        if f"{stack}.embedding.position" in tensors:
            yield f"{stack}.place", vectors(f"{stack}.embedding.position")
        if f"{stack}.final_norm.output" in tensors:
            yield f"{stack}.final", vectors(f"{stack}.final_norm.output")
        hidden = torch.stack([values(f"{layer}.feed_forward.hidden") for layer in layers])
        units = hidden.abs().topk(UNITS, dim=-1).indices
        yield f"{stack}.units", units
        before = torch.stack([values(f"{layer}.feed_forward.pre_activation") for layer in layers])
        yield f"{stack}.before_activation", before.gather(-1, units)
        yield f"{stack}.after_activation", hidden.gather(-1, units)
        for kind in self.kinds:
            for part in ("weights", "allowed"):
                every = [values(f"{layer}.{kind}_attention.{part}") for layer in layers]
                yield f"{stack}.{kind}.{part}", torch.stack(every)
        for number, layer in enumerate(layers):
            inside = f"inside.{stack}.{number}"
            for part in parts:
                if part != "feed_forward":
                    for name in _INSIDE:
                        yield f"{inside}.{part}.{name}", values(f"{layer}.{part}.{name}")
                yield f"{inside}.{part}.output", vectors(f"{layer}.{part}.output")
            for part in parts:
                for name in (*_IN_THREADS, "mean", "std"):
                    if f"{layer}.{part}_norm.{name}" in tensors:
                        read = vectors if name in _IN_THREADS else values
                        yield f"{inside}.{part}_norm.{name}", read(f"{layer}.{part}_norm.{name}")

    def _predictions(self, logits: Tensor, chosen: Tensor) -> dict[str, Tensor]:
        """Return what the figures list at every position, and log p of ``chosen``: logit − log Σ exp(logit).

        The living picture lists all classes if they are few, in their order, otherwise the most likely tokens; steps of
        decoding list more of them. A chosen token that is not among the most likely takes the place of the last.
        """
        logits = logits + self.never
        # In float64, as in Python: next to a large summand, thousands of small ones would be rounded away.
        log_sum = torch.logsumexp(logits.double(), dim=-1, keepdim=True)
        best = logits.topk(min(STEP_CANDIDATES, logits.shape[-1]), dim=-1).indices
        chosen = torch.where(chosen < 0, best[:, 0], chosen)[:, None]
        taken = logits.gather(-1, chosen)
        found = {"chosen.ids": chosen[:, 0], "chosen.log_probability": (taken.double() - log_sum)[:, 0].float()}
        if 0 < self.config.n_classes <= MAX_CLASSES:
            listed = {"written": torch.arange(logits.shape[-1])[None]}
        else:
            listed = {"written": _with_chosen(best[:, :CANDIDATES], chosen)}
        if self.config.has_decoder:
            listed["step"] = _with_chosen(best, chosen)
        for name, ids in listed.items():
            values = logits.gather(-1, ids)
            found |= {
                f"{name}.ids": ids,
                f"{name}.chosen": (ids == chosen).int().argmax(-1),
                f"{name}.logits": values,
                f"{name}.probabilities": (values.double() - log_sum).exp().float(),
            }
        if self.config.has_decoder:
            found["step.rest"] = (1 - found["step.probabilities"].double().sum(-1)).clamp(min=0).float()
            found["step.rank"] = 1 + (logits > taken).int().sum(-1)
        return found | {"written.log_sum": log_sum[:, 0].float()}


def _with_chosen(best: Tensor, chosen: Tensor) -> Tensor:
    """Return ``best`` [position, rank], the last replaced by ``chosen`` [position, 1] where it is missing."""
    is_listed = (best == chosen).any(-1, keepdim=True)
    is_last = torch.arange(best.shape[-1]) == best.shape[-1] - 1
    return torch.where(is_last & ~is_listed, chosen, best)


def _in_uint16(weights: Tensor) -> Tensor:
    """Return weights in units of 1/65535, as ``written_steps`` sends them."""
    return (weights.clamp(0, 1) * 65535).round().int()


def _strongest_rows(weights: Tensor, allowed: Tensor, sinks: Tensor, kind: str) -> Tensor:
    """Return the row of each head's largest weight between two tokens (``strongest_pair``).

    Args:
        weights: [layer, head, query, key].
        allowed: [layer, query, key].
        sinks: Special tokens and punctuation among the keys, [key].
        kind: "self" or "cross".
    """
    counts = allowed & ~sinks
    if kind == "self":
        position = torch.arange(sinks.shape[0])
        counts = counts & ~sinks[:, None] & (position[:, None] != position)
    return torch.where(counts[:, None], weights, 0.0).amax(-1).argmax(-1)


def _token_flags(checkpoint: Checkpoint) -> Tensor:
    """Return what ``AttentionView.sinks`` reads of each token, [flag, id], in the order of ``_sinks``."""
    config, tokenizer = checkpoint.config, checkpoint.tokenizer
    # An image patch has none of them.
    flags = torch.zeros(4, config.vocabulary_size, dtype=torch.bool)
    for id in range(4 if config.reads_images else config.vocabulary_size):
        role = tokenizer.special.role(id)
        text = "" if role else tokenizer.token_bytes[id].decode("utf-8", errors="replace")
        joins = is_punctuation(text) and text == text.strip()
        flags[:, id] = torch.tensor(
            [(bool(role) and role != "mask") or is_punctuation(text), joins, text[-1:].isalnum(), text[:1].isalnum()]
        )
    return flags


def _sinks(flags: Tensor) -> Tensor:
    """Return which tokens are special or separate punctuation, from the flags [flag, position] of each.

    The flags: whether it is special or punctuation, punctuation without a space, ends with a letter, begins with one.
    """
    is_sink, joins, ends, begins = flags
    none = torch.zeros_like(ends[:1])
    after_word, before_word = torch.cat([none, ends])[:-1], torch.cat([begins, none])[1:]
    return is_sink & ~(joins & after_word & before_word)


def _graph(checkpoint: Checkpoint, stack: str, stored: dict[str, tuple[int, np.ndarray]]) -> Graph:
    # also puts the inner model into evaluation mode, in which it is exported
    module = StackGraph(checkpoint, stack).eval()
    inputs, dynamic = module.examples()
    with torch.inference_mode():
        names = list(module.outputs(dict(zip(module.input_names(), inputs, strict=True))))
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        logging.getLogger("torch.onnx").setLevel(logging.ERROR)
        # First without ONNX: this step raises for a length that was treated as a constant, the other step does not.
        exported = torch.export.export(module, inputs, dynamic_shapes=dynamic, strict=False)
        program = torch.onnx.export(
            exported, dynamo=True, input_names=list(module.input_names()), output_names=names, verbose=False
        )
    assert program is not None
    model = program.model_proto
    _point_into(model, stored)
    kept = [one.name for one in model.graph.input]
    return Graph(stack, model.SerializeToString(), tuple(kept), tuple(names))


def _point_into(model: onnx.ModelProto, stored: dict[str, tuple[int, np.ndarray]]) -> None:
    """Let the weights of ``model`` refer to the file with the ``stored`` tensors, cast to float32.

    The exporter renames weights and transposes most matrices, so they are matched by content.
    """
    from onnx import TensorProto, helper, numpy_helper

    known: dict[tuple[tuple[int, ...], bytes], tuple[str, bool]] = {}
    for name, (_begin, values) in stored.items():
        wide = values.astype(np.float32)
        known[values.shape, wide.tobytes()] = name, False
        if values.ndim == 2:
            known.setdefault((values.shape[::-1], wide.T.tobytes()), (name, True))
    graph, nodes, weights, rest = model.graph, [], {}, []
    for initializer in graph.initializer:
        values = numpy_helper.to_array(initializer)
        found = known.get((values.shape, values.tobytes())) if values.dtype == np.float32 and values.size > 1 else None
        if found is None:
            rest.append(initializer)
            continue
        name, turned = found
        if name not in weights:
            weights[name] = tensor = TensorProto(name=name, data_location=TensorProto.EXTERNAL)
            begin, kept = stored[name]
            tensor.dims.extend(kept.shape)
            tensor.data_type = helper.np_dtype_to_tensor_dtype(kept.dtype)
            for key, value in (("location", WEIGHTS), ("offset", begin), ("length", kept.nbytes)):
                tensor.external_data.add(key=key, value=str(value))
        wide = f"{initializer.name}.wide" if turned else initializer.name
        nodes.append(helper.make_node("Cast", [name], [wide], to=TensorProto.FLOAT))
        if turned:
            nodes.append(helper.make_node("Transpose", [wide], [initializer.name], perm=[1, 0]))
    del graph.initializer[:]
    graph.initializer.extend([*rest, *weights.values()])
    nodes += graph.node
    del graph.node[:]
    graph.node.extend(nodes)
    # the removed fields contain paths of this machine
    for listed in (graph.value_info, graph.metadata_props, model.metadata_props):
        del listed[:]
    for node in graph.node:
        del node.metadata_props[:]
        node.doc_string = ""


def _stored_tensors(file: Path) -> dict[str, tuple[int, np.ndarray]]:
    """Return the offset and the content of each tensor of a safetensors file."""
    raw = file.read_bytes()
    (length,) = struct.unpack_from("<Q", raw)
    types = {"F16": np.float16, "F32": np.float32}
    found = {}
    for name, entry in json.loads(raw[8 : 8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        values = np.frombuffer(raw[8 + length + begin : 8 + length + end], types[entry["dtype"]])
        found[name] = (8 + length + begin, values.reshape(entry["shape"]))
    return found
