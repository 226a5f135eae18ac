"""Whether each page of the laboratory visibly answers its question for an opening, without Streamlit."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import transformer
from transformer.faults.catalogue import inapplicable
from transformer.faults.faulty_run import experiment_with_bug, padded
from transformer.faults.forward_faults import LIVE_FAULTS
from transformer.files.checkpoints import Checkpoint
from transformer.files.opening_file import Example
from transformer.heads.head_roles import sentence_roles
from transformer.interventions.activation_patching import contrast, patch_grid, recovered_shares
from transformer.interventions.experiment import experiment
from transformer.predictions.answer_probabilities import Answer, read_answer
from transformer.predictions.lens import lens_stack
from transformer.runs.edit_specs import edits_from
from transformer.runs.head_places import Head
from transformer.runs.traces import Trace
from transformer.runs.tracing import trace_of
from ui.lab.second_sentence import offered_pairs
from views.compare.compare_view_model import CompareViewModel, compare_view_model
from views.compare.which_vector import PatchMap
from views.lens.lens_view_model import LensViewModel, lens_view_model, position_of
from views.view_models import predicting_token


@dataclass(frozen=True)
class Consequences:
    """What each page of the laboratory opens with, for one example of a checkpoint."""

    checkpoint: Checkpoint
    example: Example

    @cached_property
    def trace(self) -> Trace:
        return transformer.trace(self.checkpoint, self.example.sentence)

    @cached_property
    def answer(self) -> Answer:
        """Decoding: the output, token by token."""
        return read_answer(self.trace)

    @property
    def head(self) -> Head:
        place = self.example.place
        return Head(place["stack"], place["kind"], place["layer"], place["head"])

    @property
    def cell(self) -> tuple[int, int]:
        """The row of the token in focus, and the key that it attends to most."""
        stack, kind, layer, head = self.head
        row = int(self.example.place["token"])
        return row, int(self.trace.attention(stack, layer, kind).weights[head, row].argmax())

    def with_cell_blocked(self) -> Answer:
        """Masks: the output with that cell blocked in all layers, as a click there does."""
        spec = f"mask:{self.head.stack}.*.{self.head.kind}=block {self.cell[0]}-{self.cell[1]}"
        return experiment(self.trace, edits_from(self.checkpoint, [spec])).answer_after

    @cached_property
    def swaps(self) -> tuple[str, ...]:
        """The sentences with one word swapped that Paths and Compare offer."""
        pairs = offered_pairs(self.checkpoint, self.example.sentence, self.answer.text)
        return tuple(other for clean, other in pairs if clean == self.example.sentence)

    def patched(self) -> PatchMap:
        """Compare: what patching one vector undoes, for the offered swap with the clearest effect."""
        pairs = [contrast(self.trace, other) for other in self.swaps]
        both = max(pairs, key=lambda one: min(one.most_changed_turn.clean, -one.most_changed_turn.corrupt))
        turn = both.most_changed_turn
        grid = patch_grid(both, turn)
        places = [place for row in grid for place in row if place is not None]
        return PatchMap(both, turn, grid, recovered_shares(both, turn, [places])[0])

    def comparison(self) -> CompareViewModel:
        """Compare: the sentence beside the first swap, on the head whose maps differ most."""
        return compare_view_model([experiment(self.trace, sentence=self.swaps[0])])

    def with_bug(self, fault: str) -> tuple[str, str]:
        """Bugs: the outputs of the original and of the model with this bug."""
        source = self.trace.source
        run = padded(self.trace.run, 0 if source is None else len(source))
        found = experiment_with_bug(trace_of(run), fault)
        return found.answer_before.text, found.answer_after.text

    @property
    def bugs(self) -> tuple[str, ...]:
        """The bugs of the forward pass that this model can have."""
        return tuple(fault for fault in LIVE_FAULTS if fault not in inapplicable(self.checkpoint.config))

    def lens(self) -> LensViewModel:
        """Lens: the readout at the token that the page opens with."""
        place = self.example.place
        opened = place["stack"] == lens_stack(self.checkpoint) and place["token"]
        return lens_view_model(self.trace, position_of(self.trace, opened or predicting_token(self.trace)))

    def roles(self) -> Counter[str]:
        """Heads: the roles in this sentence of the heads of the attention that is opened."""
        views = [view for view in self.trace.attention_views() if (view.stack, view.kind) == self.head[:2]]
        return Counter(role.role for view in views for role in sentence_roles(view))
