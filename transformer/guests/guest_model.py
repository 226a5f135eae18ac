"""A network of ``transformers`` as one of our models: it computes, and our layers' probes record it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from transformer.embedding import segment_numbers
from transformer.feed_forward import ACTIVATION_FUNCTIONS
from transformer.guests.attention_function import GuestPass, context_value, current_pass, watched
from transformer.guests.described_parts import NotExposed, find_norm, is_plain_linear, not_exposed
from transformer.guests.found_feed_forward import activation_of
from transformer.guests.guest_config import GuestConfig
from transformer.guests.half_precision import HALF_TYPES, keep_half
from transformer.guests.hooks import StackHooks
from transformer.guests.output_heads import Pooling, ScaledProjection, TokenHead
from transformer.guests.structure import GuestStack
from transformer.guests.text_cache import TextCache, cache_argument
from transformer.guests.trial_pass import TOLERANCE, Trial, close, same
from transformer.layer_norm import LayerNorm
from transformer.masks import padding_mask
from transformer.models import FirstTokenClassifier, Model
from transformer.pictures.image_patches import ImageTokenizer
from transformer.probes import Probe, is_recording, name_probes


class _Reached(Exception):
    """Signal that the stack has produced its output and the rest of the network is not needed."""

    def __init__(self, hidden: Tensor) -> None:
        super().__init__()
        self.hidden = hidden


_stop: ContextVar[nn.Module | None] = ContextVar("glassformer_guest_stop", default=None)
_given: ContextVar[tuple[nn.Module, Tensor] | None] = ContextVar("glassformer_guest_given", default=None)


def _carried(carrier: nn.Module, carries: type, *args: Any, **kwargs: Any) -> Any:
    """Run the ``forward`` of the module that carries a stack; it may end early or reuse a given output."""
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


class GuestModel(Model):
    """A network of ``transformers`` with the methods of our models; the weights are in memory only once.

    ``network`` computes. ``encoder`` and ``decoder`` describe it with the modules of our models, its matrices, and
    probes. Hooks in the network pass its activations through these probes, which record and edit them.

    Attributes:
        stack_hooks: The hooks that connect each stack with the modules of the network.
        own_hooks: Ids of all hooks.
    """

    is_guest = True

    def __init__(self, config: GuestConfig, network: nn.Module, stacks: Mapping[str, GuestStack]) -> None:
        super().__init__(config)
        self.network: Any = network
        self.agreement: Any = None  # of its trial passes with its own maps (``transformer.guests.agreement``)
        self.images = None if config.image is None else ImageTokenizer(config.image)
        self.stack_hooks = {name: stack.hooks for name, stack in stacks.items()}
        self.own_hooks = next(iter(self.stack_hooks.values())).ids
        self._cache_argument: str | None = None  # if a text can be continued from a cache (``find_cache``)
        for name, stack in stacks.items():
            setattr(self, name, stack)
            stack.pad_id = config.pad_id if name == "encoder" else None
            carrier = stack.hooks.carrier
            if carrier is not None and carrier is not network:
                carrier.forward = partial(_carried, carrier, stack.hooks.carries)
        writes = self.decoder if config.has_decoder else self.encoder
        if config.pooling:
            self.pooling = Pooling(config.pooling)
        elif config.n_classes:
            self.classifier = NotExposed("the layers of its classifier", logits=Probe("class"))
        else:
            writes.vocabulary_projection = NotExposed("the layers between its last vectors and the logits")
            writes.logits = Probe("position", "vocabulary")
        self.probes = name_probes(self)

    @property
    def classes(self) -> tuple[type[nn.Module], ...]:
        """The classes of ``transformers`` that compute: the network, its layers, their attention."""
        modules = [self.network]
        for hooks in self.stack_hooks.values():
            for index, block in enumerate(hooks.blocks):
                modules += [block, hooks.parts[f"layers.{index}.self_attention"]]
        return tuple(dict.fromkeys(map(type, modules)))

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield each parameter under the guest's own name; our modules share it, or use rows of it."""
        return self.network.named_parameters(prefix, recurse, remove_duplicate)

    def described_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield each parameter under the name that our modules have for it.

        Raises:
            NotExposedError: If a parameter belongs to no part that was found.
        """
        parts_of: dict[int, str] = {}
        described = [(stack, getattr(self, stack)) for stack in self.stack_hooks]
        described += [("classifier", self.classifier)] if self.config.n_classes else []
        described += [(f"{stack}.{part}", module) for stack, hooks in self.stack_hooks.items()
                      for part, module in hooks.parts.items()]  # fmt: skip
        for front, module in described:
            for name, parameter in module.named_parameters():
                parts_of.setdefault(id(parameter), f"{front}.{name}")  # a tied matrix belongs to the embedding
        for _, parameter in self.network.named_parameters():
            if (name := parts_of.get(id(parameter))) is None:
                raise not_exposed("which of its parts each of its parameters belongs to")
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
            if isinstance(module, NotExposed):
                break
            children = dict(module.named_children())
            if part not in children:
                return None
            module = children[part]
        return not_exposed(module.what) if isinstance(module, NotExposed) else None

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
        """Decode [batch, position] to [batch, position, model]; ``memory`` is an encoder's output."""
        return self._decoded(ids, memory, source_ids, {"use_cache": False})

    def _decoded(
        self, ids: Tensor, memory: Tensor | None, source_ids: Tensor | None, caching: dict[str, Any]
    ) -> Tensor:
        given = dict(caching)
        if memory is None:
            return self._hidden("decoder", self.network, ids.shape, input_ids=ids, **given)
        given["encoder_outputs"] = self.stack_hooks["encoder"].carries(last_hidden_state=memory)
        if source_ids is not None:
            given["attention_mask"] = padding_mask(source_ids, self.encoder.pad_id).long()
        return self._hidden("decoder", self.network, ids.shape, decoder_input_ids=ids, **given)

    def new_cache(self) -> TextCache | None:
        """Return an empty cache for the decoder; ``None`` if each step has to read the whole text."""
        if self._cache_argument is None:
            return None
        return TextCache(self.network, self._cache_argument, two_stacks=self.config.kind == "encoder-decoder")

    def decode_new(
        self, ids: Tensor, cache: TextCache, memory: Tensor | None = None, source_ids: Tensor | None = None
    ) -> Tensor:
        """Decode the positions of a text, [batch, position], that are not in ``cache``, and add them to it.

        Returns:
            Their hidden states, [batch, new position, model].
        """
        hidden = self._decoded(ids[:, cache.length :], memory, source_ids, cache.given())
        cache.length = ids.shape[1]
        return hidden

    @torch.inference_mode()
    def find_cache(self, given: Mapping[str, Tensor]) -> None:
        """Use a cache if it gives the last token of a short text the numbers that the whole text gives it."""
        self._cache_argument = cache_argument(self.network)
        if (cache := self.new_cache()) is None:
            return
        ids = given["input_ids"]
        source = (self.encode(ids), ids) if self.config.has_encoder else ()
        ids = given.get("decoder_input_ids", ids)
        try:
            self.decode_new(ids[:, :-1], cache, *source)
            agrees = close(self.decode(ids, *source)[:, -1:], self.decode_new(ids, cache, *source), TOLERANCE)
        except Exception:  # a network may accept a cache that it cannot use
            agrees = False
        if not agrees:
            self._cache_argument = None

    def project(self, hidden: Tensor) -> Tensor:
        """Return the logits for the output of the last stack: [batch, position, vocabulary]."""
        stack: Any = self.decoder if self.config.has_decoder else self.encoder
        return stack.logits(self._behind(hidden))

    def classify(self, hidden: Tensor, ids: Tensor) -> Tensor:
        """Return logits [batch, class]."""
        return self.classifier.logits(self._behind(hidden, ids))

    def forward(self, *ids: Tensor) -> Tensor:
        """Return logits of a text, or of a source and a target; without a head, the sentence embedding."""
        given = dict(zip(("input_ids", "decoder_input_ids"), ids, strict=False))
        return self.read_out(list(self.stack_outputs(given).values())[-1], ids[0])

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
        """Return what is computed from the last stack's output; ``ids`` are what the first stack read."""
        if self.config.pooling:
            return self.pooling(hidden, padding_mask(ids, self.config.pad_id))
        return self.classify(hidden, ids) if self.config.n_classes else self.project(hidden)

    def _hidden(self, stack: str, network: nn.Module, shape: Sequence[int], **given: Any) -> Tensor:
        """Return the output of a stack, through its probes if this call records or a probe has hooks."""
        guest_pass = GuestPass(stack, shape[0], shape[1]) if self._is_seen() else None
        try:
            with watched(guest_pass), context_value(_stop, self.stack_hooks[stack].carrier):
                return network(**given)[0]
        except _Reached as reached:
            return reached.hidden

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
            given = {
                "decoder_input_ids": ids,
                "encoder_outputs": self.stack_hooks["encoder"].carries(last_hidden_state=memory),
            }
        if self.config.has_decoder:
            given["use_cache"] = False
        carrier = self.stack_hooks["decoder" if self.config.has_decoder else "encoder"].carrier
        guest_pass = GuestPass("head", batch, n_positions) if self._is_seen() else None
        with watched(guest_pass), context_value(_given, (carrier, hidden)):
            return self.network(**given)["logits"]


@torch.inference_mode()
def describe_output(model: GuestModel, given: Mapping[str, Tensor], trial: Trial) -> None:
    """Describe what follows the last stack with this library's modules.

    ``given`` is what the network received in ``trial``, whose logits the modules have to reproduce.
    """
    stack: Any = model.decoder if model.config.has_decoder else model.encoder
    head, logits = model.network.get_output_embeddings(), trial.logits
    if logits is None:
        return
    hidden = list(model.stack_outputs(given).values())[-1]
    if model.config.n_classes:
        model.classifier = _classifier(model, hidden, trial)
    elif not isinstance(head, nn.Linear):
        return
    elif not model.config.has_decoder and (token_head := _token_head(model, head, hidden, trial)) is not None:
        stack.vocabulary_projection = token_head
    elif head.in_features == hidden.shape[-1] and (plain := head(hidden)).shape == logits.shape:
        ratio = float((plain * logits).sum() / plain.square().sum())
        softcap = getattr(model.network.config, "final_logit_softcapping", None)
        own_bias = getattr(model.network, "final_logits_bias", None) if head.bias is None else None
        for way in ((1.0, None, None), (ratio, None, None), (1.0, softcap, None), (1.0, None, own_bias)):
            projection = _projection(head, *way)
            if close(projection(hidden), logits):
                stack.vocabulary_projection = projection
                break
    model.probes = name_probes(model)


def _projection(head: nn.Linear, scale: float, cap: float | None, bias: Tensor | None) -> nn.Module:
    """Return ``head``, or our ``ScaledProjection`` with its matrix and its or another bias."""
    if scale == 1.0 and cap is None and bias is None:
        return head
    stored = dict(head.named_parameters())  # in half precision, too
    with torch.device("meta"):
        projection = ScaledProjection(*head.weight.shape[::-1], bias=False, scale=scale, cap=cap)
    projection.weight = stored["weight"]
    if bias is None:
        projection.bias = stored.get("bias")
    else:
        del projection._parameters["bias"]
        projection.bias = bias[0]
    if projection.weight.dtype in HALF_TYPES:
        keep_half(projection)
    return projection


def _first_layer(model: GuestModel, trial: Trial, given: Tensor, read: Tensor) -> dict[str, Any] | None:
    """Return the layer f(x W + b) of a head that maps ``given`` to ``read``, if there is one."""
    dense = next((e for e in trial.events if is_plain_linear(e.module) and close(e.input, given)), None)
    if dense is None or not (name := activation_of(dense.output, read)):
        return None
    model.config = replace(model.config, head_activation=name)
    return {"dense": dense.module, "activation": ACTIVATION_FUNCTIONS[name]}


def _token_head(model: GuestModel, head: nn.Module, hidden: Tensor, trial: Trial) -> nn.Module | None:
    """Return our ``TokenHead``, norm(f(x W + b)) Eᵀ + c, if the guest has these layers."""
    last = next((e for e in trial.events if e.module is head), None)
    if last is None or trial.logits is None or not close(last.output, trial.logits):
        return None
    norm = next((e for e in trial.events if e.is_norm and same(e.output, last.input)), None)
    if norm is None or not isinstance(find_norm(norm), LayerNorm):
        return None
    if (first := _first_layer(model, trial, hidden, norm.input)) is None:
        return None
    described = StackHooks("head", trial.overwritten, model.own_hooks).norm(norm)
    return TokenHead(**first, norm=described, projection=head)


def _classifier(model: GuestModel, hidden: Tensor, trial: Trial) -> nn.Module:
    """Return our ``FirstTokenClassifier``, f(x₀ W + b) C + c, if the guest has these layers."""
    linear = [event for event in trial.events if is_plain_linear(event.module)]
    last = next((event for event in linear if trial.logits is not None and same(event.output, trial.logits)), None)
    if last is None or (first := _first_layer(model, trial, hidden[:, 0], last.input)) is None:
        return model.classifier
    with torch.device("meta"):
        classifier: Any = FirstTokenClassifier(model.config, first["activation"])
    classifier.dense, classifier.projection = first["dense"], last.module

    def show_pooled(_: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
        return None if current_pass() is None else (classifier.pooled(given[0]), *given[1:])

    model.own_hooks.add(last.module.register_forward_pre_hook(show_pooled).id)
    return classifier
