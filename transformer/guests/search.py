"""What the parts of a network are searched in, and the form in which a sub-layer is found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from transformer.guests.guest_config import GuestConfig
from transformer.guests.hooks import StackHooks
from transformer.guests.rotary_positions import Rotary
from transformer.guests.trial_pass import Event, Trial


@dataclass(frozen=True)
class Search:
    """What the parts of one stack are searched in.

    Attributes:
        trial: A trial pass over the network.
        config: The config of the guest, as far as it is known before the search.
        frequencies: The rotations that the network has frequencies for.
        multipliers: Factors of what is added to the residual stream that the configuration names.
        hooks: The hooks between the stack and the network; each part that is found adds its own.
    """

    trial: Trial
    config: GuestConfig
    frequencies: tuple[Rotary, ...]
    multipliers: tuple[float, ...]
    hooks: StackHooks


@dataclass(frozen=True)
class SubLayer:
    """The attention or the feed-forward layer of one layer.

    Attributes:
        described: Our module for it.
        reader: The call that receives the sub-layer's input, if it was found.
        writer: The call whose output is the sub-layer's: that of its last matrix, or else of the whole module.
    """

    described: Any
    reader: Event | None
    writer: Event
