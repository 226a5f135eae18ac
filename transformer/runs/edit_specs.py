"""Edits as short strings, for lists, messages and URLs: ``zero:encoder.0.self.3``.

===========================================  =====================================================================
``zero:encoder.0.self.3``                    remove head 3 of encoder self-attention, layer 0 (``ablate_head``)
``mean:decoder.1.cross.2``                   replace its output by the mean (``mean_ablate_head``)
``scale:decoder.1.self.2=0.5``               scale its output (``scale_head``)
``patch:encoder.0.self.3=It is raining.``    use its output for another sentence (``patch_head``)
``edge:decoder.1.cross.2=4-0``               set the weight from query 4 to key 0 to 0 (``ablate_edge``)
``drop:encoder.1.feed_forward``              remove a sub-layer; also ``.self``, ``.cross`` (``remove_sublayer``)
``residual:encoder.1.self``                  remove the residual connection (``remove_residual``)
``steer:decoder.1.residual=4 word Paris``     add 4 × a direction to what a layer reads (``steer``); other directions,
                                             such as the difference of two prompts: ``transformer.runs.directions``
``mask:decoder.*.self=window 3``             use another mask, here in all layers (``transformer.runs.mask_edits``):
                                             ``no_causal``, ``no_padding``, ``window 3``, ``itself``,
                                             ``keys 4,5``, ``allow 2-3,2-4``, ``block 2-0`` (query-key)
===========================================  =====================================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from transformer.config import ModelConfig
from transformer.errors import MessageError
from transformer.files.checkpoints import Checkpoint
from transformer.probes import Edit
from transformer.runs import edits, mask_edits
from transformer.runs.directions import EXAMPLE, Steering, direction_of
from transformer.runs.edits import remove_residual, remove_sublayer, steer
from transformer.runs.tracing import trace
from transformer.text.message import short_repr

ON_HEADS = ("zero", "mean", "scale", "patch", "edge")
ON_SUBLAYERS = ("drop", "residual")
ACTIONS = (*ON_HEADS, *ON_SUBLAYERS, "steer", "mask")
_WITH_VALUE = ("scale", "patch", "edge", "steer", "mask")
_PATTERN = re.compile(
    r"(?P<action>\w+):(?P<stack>encoder|decoder)\.(?P<layer>\d+|\*)\.(?P<part>self|cross|feed_forward|residual)"
    r"(\.(?P<head>\d+))?(=(?P<value>.*))?",
    re.DOTALL,
)


@dataclass(frozen=True)
class EditSpec:
    """One edit as data.

    Attributes:
        layer: ``None`` for all layers (masks only).
        head: ``None`` for an edit that does not concern a single head.
    """

    action: str
    stack: str
    layer: int | None
    part: str
    head: int | None = None
    value: str = ""

    @classmethod
    def parse(cls, text: str) -> EditSpec:
        """Parse one edit.

        Raises:
            ValueError: If the text is not an edit; the message quotes it and shows the form.
        """
        found = _PATTERN.fullmatch(text)
        if not found or found["action"] not in ACTIONS:
            raise MessageError(
                f"{short_repr(text)} is not an edit; write e.g. {_EXAMPLES['zero']}, with one of "
                f"{', '.join(ACTIONS)} in front"
            )
        layer = None if found["layer"] == "*" else int(found["layer"])
        head = None if found["head"] is None else int(found["head"])
        spec = cls(found["action"], found["stack"], layer, found["part"], head, found["value"] or "")
        if (spec.action == "steer") != (spec.part == "residual"):  # only a direction is added to the stream itself
            example = _EXAMPLES[spec.action]
            raise MessageError(f"{short_repr(text)} does not fit; write it like {example}")
        on_head = spec.action in ON_HEADS
        if on_head != (head is not None) or (on_head and spec.part == "feed_forward"):
            problem = "a head of self or cross" if on_head else "no head"
            raise MessageError(
                f"{short_repr(text)} does not fit: {spec.action} needs {problem}, e.g. {_EXAMPLES[spec.action]}"
            )
        if (layer is None and spec.action != "mask") or (spec.action in _WITH_VALUE) != bool(spec.value):
            example = _EXAMPLES[spec.action]
            raise MessageError(f"{short_repr(text)} does not fit; write it like {example}")
        if spec.action == "steer":
            Steering.parse(spec.value)
        return spec

    def __str__(self) -> str:
        layer = "*" if self.layer is None else self.layer
        head = "" if self.head is None else f".{self.head}"
        return f"{self.action}:{self.stack}.{layer}.{self.part}{head}" + (f"={self.value}" if self.value else "")

    def check(self, config: ModelConfig) -> None:
        """Check that the model has this layer, sub-layer and head.

        Raises:
            ValueError: If it does not.
        """
        n_layers = config.n_encoder_layers if self.stack == "encoder" else config.n_decoder_layers
        if not n_layers:
            raise ValueError(f"{self}: this model has no {self.stack}")
        if self.layer is not None and self.layer >= n_layers:
            raise ValueError(f"{self}: there is no layer {self.layer}; the {self.stack} has layers 0 to {n_layers - 1}")
        if self.part == "cross" and not (self.stack == "decoder" and config.has_encoder):
            raise ValueError(f"{self}: the {self.stack} of this model has no cross-attention")
        n_heads = config.heads_in(self.stack)
        if self.head is not None and self.head >= n_heads:
            raise ValueError(f"{self}: there is no head {self.head}; this model has heads 0 to {n_heads - 1}")
        if self.action == "steer":
            self._check_direction(config)

    def _check_direction(self, config: ModelConfig) -> None:
        steering = Steering.parse(self.value)
        if steering.head is not None:
            EditSpec("zero", self.stack, *steering.head).check(config)
        writer = "decoder" if config.has_decoder else "encoder"
        if steering.source == "word" and self.stack != writer:
            raise ValueError(f"{self}: W_U reads the {writer}, so a word is no direction of the {self.stack}")

    def edits(self, checkpoint: Checkpoint) -> list[Edit]:
        """Return the edits of the model. A patch first runs the other sentence, without edits.

        Raises:
            ValueError: If the model lacks the location or the value is invalid.
        """
        self.check(checkpoint.config)
        if self.layer is None:
            layers = range(len(getattr(checkpoint.model, self.stack).layers))
            return [edit for layer in layers for edit in replace(self, layer=layer).edits(checkpoint)]
        if self.action in ON_SUBLAYERS:
            which = self.part if self.part == "feed_forward" else f"{self.part}_attention"
            if self.action == "drop":
                return [remove_sublayer(self.stack, layer=self.layer, which=which)]
            return [remove_residual(checkpoint.model, self.stack, layer=self.layer, which=which)]
        if self.action == "steer":
            steering = Steering.parse(self.value)
            direction = direction_of(checkpoint, self.stack, self.layer, steering)
            return [steer(self.stack, layer=self.layer, direction=direction, strength=steering.strength)]
        place: dict[str, Any] = {"layer": self.layer, "kind": self.part}
        if self.action == "mask":
            return [self._mask_edit(place)]
        place["head"] = self.head
        if self.action == "zero":
            return [edits.ablate_head(self.stack, **place)]
        if self.action == "mean":
            return [edits.mean_ablate_head(self.stack, **place)]
        if self.action == "scale":
            return [edits.scale_head(self.stack, **place, factor=_number(self))]
        if self.action == "edge":
            ((query, key),) = _pairs(self, self.value)
            return [edits.ablate_edge(self.stack, **place, query=query, key=key)]
        other = trace(checkpoint, self.value)
        context = other.values(f"{self.stack}.layers.{self.layer}.{self.part}_attention.context")[self.head]
        return [edits.patch_head(self.stack, **place, context=context)]

    def _mask_edit(self, place: dict[str, Any]) -> Edit:
        name, _, rest = self.value.partition(" ")
        if name == "no_causal":
            return mask_edits.no_causal_mask(self.stack, **place)
        if name == "no_padding":
            return mask_edits.no_padding_mask(self.stack, **place)
        if name == "itself":
            return mask_edits.attend_only_to_itself(self.stack, **place)
        if name == "window" and rest.isdecimal():
            return mask_edits.sliding_window(self.stack, **place, size=int(rest))
        if name == "keys" and all(key.isdecimal() for key in rest.split(",")):
            return mask_edits.block_keys(self.stack, **place, keys=[int(key) for key in rest.split(",")])
        if name in ("allow", "block"):
            return mask_edits.set_cells(self.stack, **place, cells=_pairs(self, rest), allowed=name == "allow")
        raise ValueError(
            f"{self}: there is no mask {self.value!r}; choose no_causal, no_padding, window 3, itself, keys 4,5, "
            f"allow 2-3 or block 2-3"
        )


def edits_from(checkpoint: Checkpoint, specs: Iterable[str | EditSpec]) -> list[Edit]:
    """Return the edits for a list of texts.

    Example: ``trace(checkpoint, sentence, edits=edits_from(checkpoint, ["zero:encoder.0.self.3"]))``.
    """
    parsed = [EditSpec.parse(spec) if isinstance(spec, str) else spec for spec in specs]
    return [edit for spec in parsed for edit in spec.edits(checkpoint)]


_EXAMPLES = {
    "zero": "zero:encoder.0.self.3",
    "mean": "mean:encoder.0.self.3",
    "scale": "scale:encoder.0.self.3=0.5",
    "patch": "patch:encoder.0.self.3=It is raining.",
    "edge": "edge:encoder.0.self.3=4-0",
    "drop": "drop:encoder.0.feed_forward",
    "residual": "residual:encoder.0.self",
    "steer": EXAMPLE,
    "mask": "mask:encoder.*.self=window 3",
}


def _number(spec: EditSpec) -> float:
    try:
        return float(spec.value)
    except ValueError:
        raise ValueError(f"{spec}: {spec.value!r} is not a number; write it like {_EXAMPLES[spec.action]}") from None


def _pairs(spec: EditSpec, text: str) -> list[tuple[int, int]]:
    """Parse "2-3,2-4" into [(2, 3), (2, 4)]; an edge must be a single pair."""
    pairs = [re.fullmatch(r"(\d+)-(\d+)", part.strip()) for part in text.split(",")]
    found = [(int(pair[1]), int(pair[2])) for pair in pairs if pair]
    if len(found) < len(pairs) or (spec.action == "edge" and len(pairs) != 1):
        raise ValueError(f"{spec}: {text!r} should name query-key, as in {_EXAMPLES['edge']}")
    return found
