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

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from transformer.config import ModelConfig
from transformer.errors import MessageError
from transformer.files.checkpoints import Checkpoint
from transformer.probes import Edit
from transformer.runs import edits
from transformer.runs.directions import EXAMPLE, Steering, direction_of
from transformer.runs.mask_edits import is_mask, mask_edit
from transformer.runs.traces import Trace
from transformer.runs.tracing import trace
from transformer.text.message import short_repr

_PATTERN = re.compile(
    r"(?P<action>\w+):(?P<stack>encoder|decoder)\.(?P<layer>\d+|\*)\.(?P<part>self|cross|feed_forward|residual)"
    r"(\.(?P<head>\d+))?(=(?P<value>.*))?",
    re.DOTALL,
)
_HEAD, _SUBLAYER = r"\d+\.(self|cross)\.\d+", r"\d+\.(self|cross|feed_forward)"
ACTIONS = {  # what follows the stack, and an example
    "zero": (_HEAD, "zero:encoder.0.self.3"),
    "mean": (_HEAD, "mean:encoder.0.self.3"),
    "scale": (rf"{_HEAD}=.+", "scale:encoder.0.self.3=0.5"),
    "patch": (rf"{_HEAD}=.+", "patch:encoder.0.self.3=It is raining."),
    "edge": (rf"{_HEAD}=\d+-\d+", "edge:encoder.0.self.3=4-0"),
    "drop": (_SUBLAYER, "drop:encoder.0.feed_forward"),
    "residual": (_SUBLAYER, "residual:encoder.0.self"),
    "steer": (r"\d+\.residual=.+", EXAMPLE),
    "mask": (r"(\d+|\*)\.(self|cross)=.+", "mask:encoder.*.self=window 3"),
}


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
            example = ACTIONS["zero"][1]
            raise MessageError(
                f"{short_repr(text)} is not an edit; write e.g. {example}, with one of {', '.join(ACTIONS)} in front"
            )
        form, example = ACTIONS[found["action"]]
        layer = None if found["layer"] == "*" else int(found["layer"])
        head = None if found["head"] is None else int(found["head"])
        spec = cls(found["action"], found["stack"], layer, found["part"], head, found["value"] or "")
        if not re.fullmatch(rf"\w+:\w+\.{form}", text, re.ASCII | re.DOTALL) or not spec._has_fitting_value():
            raise MessageError(f"{short_repr(text)} does not fit; write it like {example}")
        return spec

    def _has_fitting_value(self) -> bool:
        if self.action == "steer":
            return bool(Steering.parse(self.value))
        if self.action == "mask":
            return is_mask(self.value, self.part)
        try:
            return self.action != "scale" or math.isfinite(float(self.value))
        except ValueError:
            return False

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

    def check_positions(self, trace: Trace) -> None:
        """Check that the sentence has both tokens of an edge.

        Raises:
            ValueError: If it does not.
        """
        if self.action == "edge":
            sides = (self.stack, "encoder" if self.part == "cross" else self.stack)
            for position, side in zip(map(int, self.value.split("-")), sides, strict=True):
                if position >= (count := len(trace.tokens(side))):
                    raise ValueError(f"{self}: there is no token {position}; the {side} reads tokens 0 to {count - 1}")

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
        return [self._edit(checkpoint, self.layer)]

    def _edit(self, checkpoint: Checkpoint, layer: int) -> Edit:
        place: dict[str, Any] = {"stack": self.stack, "layer": layer}
        if self.action == "steer":
            steering = Steering.parse(self.value)
            direction = direction_of(checkpoint, self.stack, layer, steering)
            return edits.steer(**place, direction=direction, strength=steering.strength)
        if self.action in ("drop", "residual"):
            place["which"] = self.part if self.part == "feed_forward" else f"{self.part}_attention"
            if self.action == "drop":
                return edits.remove_sublayer(**place)
            return edits.remove_residual(checkpoint.model, **place)
        place["kind"] = self.part
        if self.action == "mask":
            return mask_edit(**place, mask=self.value)
        place["head"] = self.head
        if self.action == "zero":
            return edits.ablate_head(**place)
        if self.action == "mean":
            return edits.mean_ablate_head(**place)
        if self.action == "scale":
            return edits.scale_head(**place, factor=float(self.value))
        if self.action == "edge":
            query, key = map(int, self.value.split("-"))
            return edits.ablate_edge(**place, query=query, key=key)
        other = trace(checkpoint, self.value)
        context = other.values(f"{self.stack}.layers.{layer}.{self.part}_attention.context")[self.head]
        return edits.patch_head(**place, context=context)


def edits_from(checkpoint: Checkpoint, specs: Iterable[str | EditSpec]) -> list[Edit]:
    """Return the edits for a list of texts.

    Example: ``trace(checkpoint, sentence, edits=edits_from(checkpoint, ["zero:encoder.0.self.3"]))``.
    """
    parsed = [EditSpec.parse(spec) if isinstance(spec, str) else spec for spec in specs]
    return [edit for spec in parsed for edit in spec.edits(checkpoint)]
