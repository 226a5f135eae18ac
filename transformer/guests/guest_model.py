"""A network of ``transformers`` as one of our models: it computes, and our layers' probes record it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from transformer.embedding import segment_numbers
from transformer.feed_forward import ACTIVATION_FUNCTIONS
from transformer.guests import described_parts as parts
from transformer.guests.attention_function import GuestPass, current_pass, show, watch_softmax, watched
from transformer.guests.guest_config import GuestConfig
from transformer.guests.half_precision import HALF_TYPES, keep_half
from transformer.guests.output_heads import Pooling, ScaledProjection, TokenHead
from transformer.guests.structure import Factor, FoundFeedForward, FoundLayer, FoundStack, find_norm, is_norm
from transformer.guests.text_cache import TextCache, cache_argument
from transformer.guests.trial_pass import Trial, close, same
from transformer.layer_norm import LayerNorm, RMSNorm
from transformer.masks import padding_mask
from transformer.models import FirstTokenClassifier, Model
from transformer.pictures.image_patches import ImageTokenizer
from transformer.probes import Probe, current_recording, is_recording, is_watched, name_probes, record

_SAME = 1e-4  # of the largest number of a hidden state; another order of sums gives less
_STEPS = (".mean", ".std", ".mean_square", ".normalized")  # steps of a norm that have no name in the network's code


class _Reached(Exception):
    """Signal that the stack has produced its output and the rest of the network is not needed."""

    def __init__(self, hidden: Tensor) -> None:
        super().__init__()
        self.hidden = hidden


_stop: ContextVar[nn.Module | None] = ContextVar("glassformer_guest_stop", default=None)
_given: ContextVar[tuple[nn.Module, Tensor] | None] = ContextVar("glassformer_guest_given", default=None)


def _carried(carrier: nn.Module, carries: type, *args: Any, **kwargs: Any) -> Any:
    """Run the ``forward`` of the module that carries a stack; it may end there or reuse a given output."""
    given = _given.get()
    if given is not None and given[0] is carrier:
        if carries is tuple:
            return (given[1],)
        pooler = getattr(carrier, "pooler", None)  # some classifiers read what their stack pools
        more = {} if pooler is None else {"pooler_output": pooler(given[1])}
        if carries.__annotations__.get("hidden_states"):  # some heads read the last of them (DeBERTa)
            more["hidden_states"] = (given[1],)
        return carries(last_hidden_state=given[1], **more)
    output = type(carrier).forward(carrier, *args, **kwargs)
    if _stop.get() is carrier:
        raise _Reached(output[0])
    return output


class GuestStack(nn.Module):
    """The encoder or the decoder of a guest, described by our modules."""

    def __init__(self, config: GuestConfig, found: FoundStack, *, causal: bool) -> None:
        super().__init__()
        self.pad_id = None if causal else config.pad_id
        self.embedding = _describe_embedding(found, config)
        self.position_bias: nn.Module | None = None
        self.layers = nn.ModuleList(
            parts.describe_layer(layer, config, index, causal=causal) for index, layer in enumerate(found.layers)
        )
        self.final_norm = None if found.final_norm is None else parts.describe_norm(found.final_norm, config)
        if not found.settles:
            self.final_norm = parts.NotExposed("the layers after its last layer")


class GuestEmbedding(nn.Module):
    """The embedding of a guest: E[id] · scale + P[position] and a norm, as far as it has them."""

    segment: Probe | None

    def __init__(self) -> None:
        super().__init__()
        self.pad_id: int | None = None
        self.separator_id = -1  # no token ends a segment
        self.token = Probe("position", "model")


def _describe_embedding(found: FoundStack, config: GuestConfig) -> nn.Module:
    embedding: Any = GuestEmbedding()
    embedding.table = found.token_table or parts.NotExposed("the table of its embeddings")
    embedding.scale = (found.token_scale or 1.0) * found.table_scale
    embedding.segment = None if found.segment is None else Probe("position", "model")
    embedding.segment_table = found.segment_module
    embedding.position_encoding = None
    if found.position_rows is not None:
        embedding.position_encoding = parts.describe_positions(found)
        embedding.position = Probe("position", "model")
        embedding.projection = parts.NotExposed("the computation from pixels to the first vectors")
    elif found.position_module is not None:
        embedding.position_encoding = parts.describe_positions(found)
        embedding.position = Probe("position", "model")
    if found.token_scale is None:  # the table is narrower than the model, or the sum has unknown terms
        embedding.projection = parts.NotExposed("the computation from its token embeddings to the first vectors")
    embedding.sum = Probe("position", "model")
    embedding.norm = None if found.embedding_norm is None else parts.describe_norm(found.embedding_norm, config)
    return embedding


class GuestModel(Model):
    """A network of ``transformers`` with the methods of our models; the weights are in memory only once.

    ``network`` computes. ``encoder`` and ``decoder`` describe it with the modules of our models, its matrices, and
    probes. Hooks in the network pass its activations through these probes, which record and edit them.

    Attributes:
        classes: The classes of ``transformers`` that compute: the network, its layers, their attention.
    """

    is_guest = True

    def __init__(self, config: GuestConfig, network: nn.Module, stacks: Mapping[str, FoundStack]) -> None:
        super().__init__(config)
        self.network: Any = network
        self.own_hooks: set[int] = set()
        self.agreement: Any = None  # of its trial passes with its own maps (``transformer.guests.agreement``)
        layers = [layer for found in stacks.values() for layer in found.layers]
        parts_of_layers = (part for layer in layers for part in (layer.block, layer.self_attention.module))
        self.classes = tuple(dict.fromkeys((type(network), *map(type, parts_of_layers))))
        self.images = None if config.image is None else ImageTokenizer(config.image)
        self._carriers = {name: found.carrier for name, found in stacks.items()}
        self._carries: dict[str, Any] = {name: found.carries for name, found in stacks.items()}
        self._cache_argument = cache_argument(network) if config.has_decoder else None
        self._cache_agrees: bool | None = None
        self._modules_of = {name: dict(_parts_of(network, found)) for name, found in stacks.items()}
        for name, found in stacks.items():
            stack = GuestStack(config, found, causal=name == "decoder")
            setattr(self, name, stack)
            if found.carrier is not None and found.carrier is not network:
                found.carrier.forward = partial(_carried, found.carrier, found.carries)
            _Hooks(self, stack, name, found)
        writes = self.decoder if config.has_decoder else self.encoder
        if config.pooling:
            self.pooling = Pooling(config.pooling)
        elif config.n_classes:
            self.classifier = parts.NotExposed("the layers of its classifier", logits=Probe("class"))
        else:
            writes.vocabulary_projection = parts.NotExposed("the layers between its last vectors and the logits")
            writes.logits = Probe("position", "vocabulary")
        self.probes = name_probes(self)

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield each parameter under the guest's own name: our modules share them, or use rows of them."""
        return self.network.named_parameters(prefix, recurse, remove_duplicate)

    def described_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield each parameter under the name that our modules have for it.

        Raises:
            NotExposedError: If a parameter belongs to no part that was found.
        """
        parts_of: dict[int, str] = {}
        described = [(stack, getattr(self, stack)) for stack in self._carriers]
        described += [("classifier", self.classifier)] if self.config.n_classes else []
        described += [(f"{stack}.{part}", module) for stack, modules in self._modules_of.items()
                      for part, module in modules.items()]  # fmt: skip
        for front, module in described:
            for name, parameter in module.named_parameters():
                parts_of.setdefault(id(parameter), f"{front}.{name}")  # a tied matrix belongs to the embedding
        for _, parameter in self.network.named_parameters():
            if (name := parts_of.get(id(parameter))) is None:
                raise parts.not_exposed("which of its parts each of its parameters belongs to")
            yield name, parameter

    def set_special_ids(self, *, pad: int | None, separator: int | None) -> None:
        """Make the encoder mask ``pad``, or no token if it is None, and end a segment at ``separator``."""
        self.config = replace(self.config, pad_id=pad)
        if self.config.has_encoder:
            embedding: Any = self.encoder.embedding
            self.encoder.pad_id = embedding.pad_id = pad
            embedding.separator_id = -1 if separator is None else separator

    def not_exposed(self, name: str) -> Exception | None:
        """Return the error for an activation that this guest does not expose, or None."""
        module: Any = self
        for part in name.split("."):
            if isinstance(module, parts.NotExposed):
                break
            children = dict(module.named_children())
            if part not in children:
                return None
            module = children[part]
        return parts.not_exposed(module.what) if isinstance(module, parts.NotExposed) else None

    def encode(self, ids: Tensor) -> Tensor:
        """Encode [batch, source position] as [batch, source position, model]."""
        if self.images is not None:
            pixels = self.images.pixels(ids).to(ids.device)
            return self._hidden("encoder", self.network, ids.shape, pixel_values=pixels)
        mask = padding_mask(ids, self.encoder.pad_id).long()
        network = self.network.get_encoder() if self.config.has_decoder else self.network
        given = {"input_ids": ids, "attention_mask": mask}
        if (n_segments := self.config.n_segments) > 1:
            embedding: Any = self.encoder.embedding
            given["token_type_ids"] = segment_numbers(ids, embedding.separator_id, embedding.pad_id, n_segments)
        return self._hidden("encoder", network, ids.shape, **given)

    def decode(
        self, ids: Tensor, memory: Tensor | None = None, source_ids: Tensor | None = None, start: int = 0
    ) -> Tensor:
        """Decode [batch, position] to [batch, position, model]; only an encoder gives ``memory``."""
        return self._decoded(ids, memory, source_ids, {"use_cache": False})

    def _decoded(
        self, ids: Tensor, memory: Tensor | None, source_ids: Tensor | None, caching: dict[str, Any]
    ) -> Tensor:
        given = dict(caching)
        if memory is None:
            return self._hidden("decoder", self.network, ids.shape, input_ids=ids, **given)
        given["encoder_outputs"] = self._carries["encoder"](last_hidden_state=memory)
        if source_ids is not None:
            given["attention_mask"] = padding_mask(source_ids, self.encoder.pad_id).long()
        return self._hidden("decoder", self.network, ids.shape, decoder_input_ids=ids, **given)

    def new_cache(self) -> TextCache | None:
        """Return an empty cache for the decoder; ``None`` if each step has to read the whole text."""
        if self._cache_argument is None or self._cache_agrees is False:
            return None
        return TextCache(self.network, self._cache_argument, two_stacks=self.config.kind == "encoder-decoder")

    def decode_new(
        self, ids: Tensor, cache: TextCache, memory: Tensor | None = None, source_ids: Tensor | None = None
    ) -> Tensor | None:
        """Decode the positions of a text, [batch, position], that are not in ``cache``, and add them to it.

        The first position that any text continues is also computed from the whole text.

        Returns:
            Their hidden states, [batch, new position, model]; ``None`` if the cache leads to other numbers or fails.
        """
        continues = cache.length > 0
        try:
            hidden = self._decoded(ids[:, cache.length :], memory, source_ids, cache.given())
        except Exception:
            if self._cache_agrees:  # it has worked before
                raise
            self._cache_agrees = False  # a pass over the whole text shows whether the text is the cause
            return None
        cache.length = ids.shape[1]
        if continues and self._cache_agrees is None:
            whole = self.decode(ids, memory, source_ids)[:, -hidden.shape[1] :]
            difference = float((whole - hidden).abs().max())
            self._cache_agrees = difference <= _SAME * float(whole.abs().max())
        return None if self._cache_agrees is False else hidden

    def project(self, hidden: Tensor) -> Tensor:
        """Return the logits for the output of the last stack: [batch, position, vocabulary]."""
        stack: Any = self.decoder if self.config.has_decoder else self.encoder
        return stack.logits(self._behind(hidden))

    def classify(self, hidden: Tensor, ids: Tensor) -> Tensor:
        """Return logits [batch, class]."""
        return self.classifier.logits(self._behind(hidden, ids))

    def forward(self, *ids: Tensor) -> Tensor:
        """Return logits of a text, or of a source and a target; without a head, the sentence embedding."""
        return self.read_out(self.last_hidden(*ids), ids[0])

    def last_hidden(self, *ids: Tensor) -> Tensor:
        """Return the output of the last stack: [batch, position, model]."""
        if self.config.kind == "encoder-decoder":
            return self.decode(ids[1], self.encode(ids[0]), ids[0])
        return self.encode(ids[0]) if self.config.has_encoder else self.decode(ids[0])

    def stack_outputs(self, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the output of each stack for what its network receives: token ids, or the pixels of an image."""
        if (pixels := given.get("pixel_values")) is not None:
            return {"encoder": self._hidden("encoder", self.network, (len(pixels), 0), pixel_values=pixels)}
        ids = given["input_ids"]
        if not self.config.has_encoder:
            return {"decoder": self.decode(ids)}
        memory = self.encode(ids)
        if not self.config.has_decoder:
            return {"encoder": memory}
        return {"encoder": memory, "decoder": self.decode(given["decoder_input_ids"], memory, ids)}

    def read_out(self, hidden: Tensor, ids: Tensor) -> Tensor:
        """Return what is computed from the output of the last stack; ``ids`` are those of the first."""
        if self.config.pooling:
            return self.pooling(hidden, padding_mask(ids, self.config.pad_id))
        return self.classify(hidden, ids) if self.config.n_classes else self.project(hidden)

    def _hidden(self, stack: str, network: nn.Module, shape: Sequence[int], **given: Any) -> Tensor:
        """Return the output of a stack, through its probes if this call records or a probe has hooks."""
        guest_pass = GuestPass(stack, shape[0], shape[1]) if self._is_seen() else None
        carrier = self._carriers[stack]
        token = _stop.set(carrier)
        try:
            with watched(guest_pass):
                return network(**given)[0]
        except _Reached as reached:
            return reached.hidden
        finally:
            _stop.reset(token)

    def _is_seen(self) -> bool:
        return is_recording() or any(probe._forward_hooks for probe in self.probes.values())

    def _behind(self, hidden: Tensor, ids: Tensor | None = None) -> Tensor:
        """Return the logits that the network computes from the output of its last stack."""
        batch, n_positions = hidden.shape[:2]
        ids = hidden.new_zeros(batch, n_positions, dtype=torch.long) if ids is None else ids
        given: dict[str, Any] = {"input_ids": ids}
        if self.images is not None:
            given = {"pixel_values": hidden.new_zeros(batch, 3, *self.images.image.preprocessing.shape)}
        if self.config.kind == "encoder-decoder":
            memory = hidden.new_zeros(batch, 1, self.config.d_model)
            given = {"decoder_input_ids": ids, "encoder_outputs": self._carries["encoder"](last_hidden_state=memory)}
        if self.config.has_decoder:
            given["use_cache"] = False
        carrier = self._carriers["decoder" if self.config.has_decoder else "encoder"]
        token = _given.set((carrier, hidden))
        try:
            with watched(GuestPass("head", batch, n_positions) if self._is_seen() else None):
                return self.network(**given)["logits"]
        finally:
            _given.reset(token)


def _parts_of(network: nn.Module, found: FoundStack) -> Iterator[tuple[str, nn.Module]]:
    """Yield modules of a network by the names of our parts, also those whose steps are not exposed."""
    for index, layer in enumerate(found.layers):
        yield f"layers.{index}.self_attention", layer.self_attention.module
        if layer.cross_attention is not None:
            yield f"layers.{index}.cross_attention", layer.cross_attention.module
        for name, norm in layer.norms.items():
            yield f"layers.{index}.{name}", norm.module
    if found.final_norm is not None:
        yield "final_norm", found.final_norm.module
    holder = next((each for each in network.modules() if found.token_table in each.children()), None)
    if holder is not None and found.layers[0].block not in holder.modules():
        yield "embedding", holder


def describe_output(model: GuestModel, hidden: Tensor, trial: Trial) -> None:
    """Describe what follows the last stack by our modules, if these reproduce the logits of ``trial``."""
    if model.config.n_classes:
        model.classifier = _classifier(model, hidden, trial)
        model.probes = name_probes(model)
        return
    stack = model.decoder if model.config.has_decoder else model.encoder
    head = model.network.get_output_embeddings()
    logits = trial.logits
    if not isinstance(head, nn.Linear) or logits is None:
        return
    if not model.config.has_decoder:
        token_head = _token_head(head, hidden, trial)
        if token_head is not None:
            stack.vocabulary_projection, norm = token_head
            _Watch(model, "head", trial.overwritten).attach_norm(norm, stack.vocabulary_projection.norm)
            model.probes = name_probes(model)
            return
    with torch.inference_mode():
        plain = head(hidden) if head.in_features == hidden.shape[-1] else None
    if plain is not None and plain.shape == logits.shape:
        ratio = float((plain * logits).sum() / plain.square().sum())
        cap = getattr(model.network.config, "final_logit_softcapping", None)
        bias = getattr(model.network, "final_logits_bias", None)
        if bias is not None and head.bias is None and bool(bias.any()) and close(plain + bias, logits):
            stack.vocabulary_projection = _projection(head, scale=1.0, cap=None, bias=bias[0])
            return
        for scale, bound in ((1.0, None), (ratio, None), (1.0, cap)):
            found = plain * scale
            found = bound * torch.tanh(found / bound) if bound else found
            if float((found - logits).abs().max()) > 2e-5 * float(logits.abs().max()):
                continue
            if (scale, bound) == (1.0, None):
                stack.vocabulary_projection = head
                return
            stack.vocabulary_projection = _projection(head, scale=scale, cap=bound)
            return


def _projection(head: nn.Linear, *, scale: float, cap: float | None, bias: Tensor | None = None) -> nn.Module:
    """Return our ``ScaledProjection`` with the matrix of ``head``, and its bias or another one."""
    stored = dict(head.named_parameters())  # in half precision, too
    with torch.device("meta"):
        projection = ScaledProjection(*head.weight.shape[::-1], bias=False, scale=scale, cap=cap)
    projection.weight = stored["weight"]
    projection.bias = stored.get("bias")
    if bias is not None:  # a buffer of the network, not one of its parameters
        del projection._parameters["bias"]
        projection.bias = bias
    if projection.weight.dtype in HALF_TYPES:
        keep_half(projection)
    return projection


def _token_head(head: nn.Linear, hidden: Tensor, trial: Trial) -> tuple[nn.Module, nn.Module] | None:
    """Return our ``TokenHead``, norm(f(x W + b)) Eᵀ + c, and its norm, if the guest has these layers."""
    dense = next((e for e in trial.events if parts.is_plain_linear(e.module) and close(e.input, hidden)), None)
    last = next((e for e in trial.events if e.module is head), None)
    norms = (e for e in trial.events if is_norm(e.module) and last is not None and same(e.output, last.input))
    norm = next(norms, None)
    if dense is None or last is None or norm is None:
        return None
    found = find_norm(norm)
    function = next(
        (f for f in ACTIVATION_FUNCTIONS.values() if close(f(dense.output), norm.input)),
        None,
    )
    if function is None or found.kind != "layer" or trial.logits is None or not close(last.output, trial.logits):
        return None
    token_head = TokenHead.__new__(TokenHead)
    nn.Module.__init__(token_head)
    token_head.dense, token_head.activation, token_head.projection = dense.module, function, head
    token_head.norm = parts.norm_of(found, norm.input.shape[-1])
    return token_head, norm.module


def _classifier(model: GuestModel, hidden: Tensor, trial: Trial) -> nn.Module:
    """Return our ``FirstTokenClassifier``, f(x₀ W + b) C + c, if the guest has these layers."""
    unknown = model.classifier
    linear = [event for event in trial.events if parts.is_plain_linear(event.module)]
    dense = next((event for event in linear if close(event.input, hidden[:, 0])), None)
    last = next((event for event in linear if trial.logits is not None and same(event.output, trial.logits)), None)
    if dense is None or last is None:
        return unknown
    functions = (function for function in ACTIVATION_FUNCTIONS.values() if close(function(dense.output), last.input))
    if (function := next(functions, None)) is None:
        return unknown
    classifier = FirstTokenClassifier.__new__(FirstTokenClassifier)
    nn.Module.__init__(classifier)
    classifier.dense, classifier.activation, classifier.projection = dense.module, function, last.module
    classifier.pooled, classifier.logits = Probe("model"), unknown.logits

    def show_pooled(_: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
        return None if current_pass() is None else (classifier.pooled(given[0]), *given[1:])

    model.own_hooks.add(last.module.register_forward_pre_hook(show_pooled).id)
    return classifier


def _routed(guest_pass: GuestPass, probe: Probe, output: Any) -> Any:
    """Record the weight of each expert at each position, and route by the edited weights."""
    if isinstance(output, Tensor):
        return probe(guest_pass.shaped(output)).reshape(output.shape)
    chosen = next((each for each in output if isinstance(each, Tensor) and not each.is_floating_point()), None)
    place = next((i for i, each in enumerate(output) if chosen is not None and each.shape == chosen.shape), None)
    if chosen is None or place is None:
        return (probe(guest_pass.shaped(output[0])).reshape(output[0].shape), *output[1:])
    weights = output[place]
    whole = weights.new_zeros(*output[0].shape).scatter(-1, chosen, weights)
    given = guest_pass.shaped(whole)
    shown = probe(given)
    routed = weights if shown is given else shown.reshape(whole.shape).gather(-1, chosen)
    return (*output[:place], routed, *output[place + 1 :])


class _Watch:
    """Hooks in a network that act only in recorded passes over the stack ``name``."""

    def __init__(self, model: GuestModel, name: str, overwritten: set[int]) -> None:
        self.model, self.name, self.overwritten = model, name, overwritten

    def before(self, module: nn.Module, change: Callable[[GuestPass, Tensor], Tensor]) -> None:
        """Apply ``change`` to the input of ``module`` in recorded passes."""

        def hook(_: nn.Module, args: tuple, kwargs: dict) -> tuple[tuple, dict] | None:
            guest_pass = current_pass()
            if guest_pass is None or guest_pass.stack != self.name:
                return None
            given = args[0] if args else kwargs["hidden_states"]
            changed = change(guest_pass, guest_pass.shaped(given))
            if changed is given:
                return None
            changed = changed.reshape(given.shape)
            if args:
                return (changed, *args[1:]), kwargs
            return args, {**kwargs, "hidden_states": changed}

        self.model.own_hooks.add(module.register_forward_pre_hook(hook, with_kwargs=True).id)

    def after(self, module: nn.Module, change: Callable[[GuestPass, Tensor, Tensor], Tensor]) -> None:
        """Replace the output of ``module`` by ``change(pass, input, output)`` in recorded passes."""
        copies = id(module) in self.overwritten

        def hook(_: nn.Module, args: tuple, kwargs: dict, output: Any) -> Any:
            guest_pass = current_pass()
            if guest_pass is None or guest_pass.stack != self.name:
                return None
            whole = isinstance(output, Tensor)
            first = output if whole else output[0]
            given = args[0] if args else next(iter(kwargs.values()))
            given = guest_pass.shaped(given) if isinstance(given, Tensor) else first
            changed = change(guest_pass, given, guest_pass.shaped(first))
            if changed is first and not copies:
                return None
            changed = changed.reshape(first.shape)
            changed = changed.clone() if copies else changed
            return changed if whole else (changed, *output[1:])

        self.model.own_hooks.add(module.register_forward_hook(hook, with_kwargs=True).id)

    def after_all(self, module: nn.Module, change: Callable[[GuestPass, Any], Any]) -> None:
        """Replace the complete output of ``module`` by ``change(pass, output)``."""

        def hook(_: nn.Module, args: tuple, output: Any) -> Any:
            guest_pass = current_pass()
            return None if guest_pass is None or guest_pass.stack != self.name else change(guest_pass, output)

        self.model.own_hooks.add(module.register_forward_hook(hook).id)

    def attach_norm(self, module: nn.Module, described: Any) -> None:
        self.before(module, lambda _, x: described.input(x))
        self.after(module, lambda _, x, y: _norm_steps(described, x, y))


class _Hooks(_Watch):
    """Hooks that connect a network to the probes of a stack."""

    def __init__(self, model: GuestModel, stack: GuestStack, name: str, found: FoundStack) -> None:
        super().__init__(model, name, found.overwritten)
        self.layers: list[Any] = list(stack.layers)
        for index, (layer, what) in enumerate(zip(self.layers, found.layers, strict=True)):
            self.attach_layer(layer, what, index)
        self.attach_embedding(stack.embedding, found)
        if found.final_norm is not None and found.settles:
            self.attach_norm(found.final_norm.module, stack.final_norm)

    def attach_layer(self, layer: Any, found: FoundLayer, index: int) -> None:
        (factor, fed_factor), order = found.factors, found.order

        def begin(guest_pass: GuestPass, stream: Tensor) -> Tensor:
            guest_pass.depth = index
            guest_pass.kept.clear()
            guest_pass.kept["stream"] = layer.residual["in"](stream)
            return guest_pass.kept["stream"]

        def end(guest_pass: GuestPass, _: Tensor, stream: Tensor) -> Tensor:
            kept = guest_pass.kept
            if order == "parallel" and "after" in kept:
                after = kept["after"]
                shown = layer.residual["after_self_attention"](after)
                stream = stream if shown is after else stream + (shown - after)
            for moved in ("moved", "moved again"):
                stream = stream + kept[moved] if moved in kept else stream
            return layer.residual["out"](stream)

        self.before(found.block, begin)
        self.after(found.block, end)
        for kind in ("self_attention", "cross_attention"):
            attention = getattr(found, kind)
            if attention is None:
                continue
            shown_by = getattr(layer, kind)
            show(attention.module, shown_by)
            if attention.call is None:
                watch_softmax(attention.module)
            writer = attention.output or attention.module
            sandwiched = f"{kind}_output_norm" in found.norms

            def write(
                guest_pass: GuestPass, _: Tensor, output: Tensor, probes: Any = shown_by, sandwiched: bool = sandwiched
            ) -> Tensor:
                update = output if parts.is_one(factor) else output * factor
                shown = probes.output(update)
                if order == "parallel" and not sandwiched:
                    guest_pass.kept["after"] = guest_pass.kept["stream"] + shown
                return output if shown is update else shown / factor

            self.after(writer, write)
        for name, norm in found.norms.items():
            if found.shares_norm and name == "feed_forward_norm":
                continue
            self.attach_norm(norm.module, getattr(layer, name))
        self.attach_sums(layer, found)
        if found.feed_forward is not None:
            self.attach_feed_forward(layer, found.feed_forward, fed_factor, shares_norm=found.shares_norm)

    def attach_sums(self, layer: Any, found: FoundLayer) -> None:
        """Connect the residual stream between two sub-layers to its probe."""
        cross = found.cross_attention is not None
        stages = [("after_self_attention", "cross_attention" if cross else "feed_forward", "moved")]
        stages += [("after_cross_attention", "feed_forward", "moved again")] if cross else []
        for stage, following, key in stages:
            if found.order == "pre":
                norm = found.norms.get(f"{following}_norm")
                reader = norm.module if norm is not None else found.feed_forward.reader if found.feed_forward else None
                if reader is None:
                    continue

                def show_sum(guest_pass: GuestPass, stream: Tensor, stage: str = stage, key: str = key) -> Tensor:
                    shown = layer.residual[stage](stream)
                    if shown is not stream:  # the block keeps its own sum; the edit is added at its end
                        guest_pass.kept[key] = shown - stream
                    return shown

                self.before(reader, show_sum)
            elif found.order == "post":
                norm = found.norms.get(f"{stage.removeprefix('after_')}_norm")
                if norm is not None:
                    self.after(norm.module, lambda _, __, y, stage=stage: layer.residual[stage](y))

    def attach_feed_forward(self, layer: Any, found: FoundFeedForward, factor: Factor, *, shares_norm: bool) -> None:
        def read(guest_pass: GuestPass, x: Tensor) -> Tensor:
            norm = layer.feed_forward_norm
            stream = guest_pass.kept["stream"]
            given = norm.input(stream)
            return _norm_steps(norm, given, x if given is stream else _normed(norm, given))

        fed = layer.feed_forward

        def write(_: GuestPass, __: Tensor, output: Tensor) -> Tensor:
            update = output if parts.is_one(factor) else output * factor
            shown = fed.output(update)
            return output if shown is update else shown / factor

        if shares_norm and found.reader is not None:
            self.before(found.reader, read)
        if found.experts is not None:
            self.after(found.experts, write)
            if found.router is not None:
                self.after_all(found.router, lambda seen, y: _routed(seen, fed.router, y))
            return
        if found.down is None:
            return
        self.before(found.down, lambda _, x: fed.hidden(x))
        self.after(found.down, write)
        if found.first is None:
            return
        if found.fused:

            def open_gates(_: GuestPass, __: Tensor, y: Tensor) -> Tensor:
                given, up = y.chunk(2, dim=-1)
                shown = fed.pre_activation(given)
                return y if shown is given else torch.cat((shown, up), dim=-1)

            self.after(found.first, open_gates)
        else:
            self.after(found.first, lambda _, __, y: fed.pre_activation(y))
        if found.gated and found.activation_module is not None:
            self.after(found.activation_module, lambda _, __, y: fed.gate(y))

    def attach_embedding(self, embedding: Any, found: FoundStack) -> None:
        scale = found.token_scale or 1.0
        if found.position_rows is not None:
            self.attach_patches(embedding, found)
            return
        if found.token_table is not None:

            def tokens(guest_pass: GuestPass, _: Tensor, output: Tensor) -> Tensor:
                vectors = output if scale == 1.0 else output * scale
                shown = embedding.token(vectors)
                if found.segment is not None and found.segment_module is None:
                    constant = found.segment.expand_as(vectors)
                    if (edited := embedding.segment(constant)) is not constant:
                        shown = shown + (edited - constant)
                return output if shown is vectors else shown / scale

            self.after(found.token_table, tokens)
        if found.segment_module is not None:
            self.after(found.segment_module, lambda _, __, output: embedding.segment(output))
        if found.position_module is not None:

            def positions(guest_pass: GuestPass, _: Tensor, output: Tensor) -> Tensor:
                return embedding.position(output if output.ndim == 3 else output[None])

            self.after(found.position_module, positions)
        if found.embedding_norm is not None:
            self.before(found.embedding_norm.module, lambda _, x: embedding.sum(x))
            self.attach_norm(found.embedding_norm.module, embedding.norm)
        else:
            first = found.layers[0].block

            def begin(guest_pass: GuestPass, stream: Tensor) -> Tensor:
                return embedding.sum(stream) if guest_pass.depth < 0 else stream

            self.before_all(first, begin)

    def attach_patches(self, embedding: Any, found: FoundStack) -> None:
        """Connect what the first layer or norm reads: patches, or tokens before them, plus positions."""
        rows = found.position_rows

        def begin(guest_pass: GuestPass, stream: Tensor) -> Tensor:
            if guest_pass.depth >= 0:
                return stream
            vectors, positions = stream - rows, rows[None]
            shown, placed = embedding.token(vectors), embedding.position(positions)
            stream = stream if shown is vectors and placed is positions else shown + placed
            return embedding.sum(stream)

        if found.embedding_norm is not None:
            self.before(found.embedding_norm.module, begin)
            self.attach_norm(found.embedding_norm.module, embedding.norm)
        else:
            self.before_all(found.layers[0].block, begin)

    def before_all(self, module: nn.Module, change: Callable[[GuestPass, Tensor], Tensor]) -> None:
        """Do the same as ``before``, ahead of the hooks that exist already."""
        there = list(module._forward_pre_hooks)
        self.before(module, change)
        for id in there:
            module._forward_pre_hooks.move_to_end(id)


def connect_bias(model: GuestModel, name: str, found: FoundStack, bias: parts.SharedBias) -> None:
    """Record what a guest reads of its table of relative positions, [query, key, head]."""

    def show(_: GuestPass, __: Tensor, output: Tensor) -> Tensor:
        given = output.permute(2, 0, 1)[None]
        shown = bias.values(given)
        return output if shown is given else shown[0].permute(1, 2, 0)

    _Watch(model, name, found.overwritten).after(bias.source, show)


def _normed(norm: Any, x: Tensor) -> Tensor:
    with watched(None), record(names=()):
        return norm.normalise(x) if isinstance(norm, LayerNorm) else norm(x)


def _norm_steps(norm: Any, x: Tensor, y: Tensor) -> Tensor:
    """Record the steps of a norm with the output ``y``; return its output after edits of them."""
    if isinstance(norm, LayerNorm) and is_watched(norm.mean, norm.std, norm.normalized):
        if _is_derived(norm, x, _layer_norm_steps, (norm.mean, norm.std, norm.normalized)):
            return norm.output(y)
        mean, std, normalized = _layer_norm_steps(norm, x)
        if (shown_mean := norm.mean(mean)) is not mean:
            centred = x - shown_mean.unsqueeze(-1)
            std = torch.sqrt(centred.square().mean(dim=-1) + norm.epsilon)
            normalized = centred / std.unsqueeze(-1)
        if (shown_std := norm.std(std)) is not std:
            normalized = (x - shown_mean.unsqueeze(-1)) / shown_std.unsqueeze(-1)
        shown = norm.normalized(normalized)
        same_steps = shown_mean is mean and shown_std is std and shown is normalized
        return norm.output(y if same_steps else shown * norm.weight + norm.bias)
    if isinstance(norm, RMSNorm) and is_watched(norm.mean_square, norm.normalized):
        if _is_derived(norm, x, _rms_norm_steps, (norm.mean_square, norm.normalized)):
            return norm.output(y)
        mean_square, _ = _rms_norm_steps(norm, x)
        shown_square = norm.mean_square(mean_square)
        normalized = x * torch.rsqrt(shown_square + norm.epsilon).unsqueeze(-1)
        shown = norm.normalized(normalized)
        same_steps = shown_square is mean_square and shown is normalized
        return norm.output(y if same_steps else shown * norm.weight)
    return norm.output(y)


def _is_derived(
    norm: Any, x: Tensor, steps: Callable[[Any, Tensor], Sequence[Tensor]], probes: Sequence[Probe]
) -> bool:
    """Let the reader of a recording compute the steps of a norm, and return whether this is possible."""
    recording = current_recording()
    if recording is None or x.requires_grad:
        return False
    computed = {probe: partial(_step, steps, norm, x, index) for index, probe in enumerate(probes)}
    return recording.derive(norm.input, computed)


def _step(steps: Callable[[Any, Tensor], Sequence[Tensor]], norm: Any, x: Tensor, index: int) -> Tensor:
    return steps(norm, x)[index]


def _layer_norm_steps(norm: LayerNorm, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return μ, √(σ² + ε) and the normalised vectors."""
    normalized, mean, inverse = torch.native_layer_norm(x, x.shape[-1:], None, None, norm.epsilon)
    return mean.squeeze(-1), inverse.squeeze(-1).reciprocal(), normalized


def _rms_norm_steps(norm: RMSNorm, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean(x²) and the normalised vectors."""
    mean_square = torch.linalg.vector_norm(x, dim=-1).square() / x.shape[-1]
    return mean_square, x * torch.rsqrt(mean_square + norm.epsilon).unsqueeze(-1)
