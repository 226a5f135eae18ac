"""Four faults of the forward pass, injected for one call, or as a second model with the same weights."""

import math
from dataclasses import replace

import torch
from torch import Tensor

from transformer.files.build import build_model
from transformer.files.checkpoints import Checkpoint
from transformer.interventions.experiment import Experiment, experiment, without_padding_mask
from transformer.layers.positional_encodings import without_positions
from transformer.models import Model
from transformer.probes import Edit, recorded_so_far
from transformer.runs.decoding_strategies import Greedy
from transformer.runs.run import Run
from transformer.runs.traces import Trace
from transformer.runs.tracing import trace_of
from transformer.toy.learner import HEALTHY

PADS = 4  # padding tokens that a case and a check add
LIVE_FAULTS = ("scale", "positions", "padding", "norm")


def inject_fault(checkpoint: Checkpoint, fault: str) -> tuple[Checkpoint, tuple[Edit, ...]]:
    """Return the checkpoint and the edits that make one of ``LIVE_FAULTS``; ``HEALTHY`` changes nothing.

    ``checkpoint`` itself stays as it is. "norm" comes with a second model, which shares its weights with the first.

    Raises:
        ValueError: If the fault is unknown.
    """
    if fault == "scale":
        return checkpoint, unscaled_scores(checkpoint.model)
    if fault == "positions":
        stacks = [stack for stack in ("encoder", "decoder") if hasattr(checkpoint.model, stack)]
        return checkpoint, tuple(edit for stack in stacks for edit in without_positions(checkpoint.model, stack))
    if fault == "padding":
        return checkpoint, tuple(without_padding_mask(checkpoint))
    if fault == "norm":
        return replace(checkpoint, model=other_norm_order(checkpoint.model)), ()
    if fault != HEALTHY:
        raise ValueError(f"fault is {fault!r}; choose one of {', '.join(LIVE_FAULTS)}")
    return checkpoint, ()


def unscaled_scores(model: Model) -> tuple[Edit, ...]:
    """Return edits for QKᵀ instead of QKᵀ / √d_k in every attention; a relative bias stays as it is."""
    factor = math.sqrt(model.config.d_head)

    def edit_of(name: str) -> Edit:
        bias = _bias_of(model, name)

        def unscale(scores: Tensor) -> Tensor:  # [batch, head, query, key]
            if not bias:
                return scores * factor
            added = recorded_so_far(bias)
            return (scores - added) * factor + added

        return Edit(name, unscale, f"{name}: not divided by √d_k")

    return tuple(edit_of(name) for name in score_names(model))


def score_names(model: Model) -> tuple[str, ...]:
    """Return the names of the scores of each attention, in the order of the forward pass."""
    return tuple(name for name in model.probes if name.endswith("_attention.scores"))


def _bias_of(model: Model, scores: str) -> str:
    """Return the name of the relative bias that is added to these scores, "" if there is none."""
    stack = scores.split(".", 1)[0]
    name = f"{stack}.position_bias.values"
    return name if ".self_attention." in scores and name in model.probes else ""


def position_bias(model: Model, tensors: dict[str, Tensor], scores: str) -> Tensor | float:
    """Return what a run added to ``scores`` for distances: [1, head, query, key], or 0.0."""
    name = _bias_of(model, scores)
    return tensors[name] if name else 0.0


def other_norm_order(model: Model) -> Model:
    """Return a model with the same weights in the other order: pre-norm as post-norm, or the reverse.

    Both orders have a LayerNorm for every sub-layer. Only pre-norm has a final one at the end of each stack: it is
    dropped on conversion to post-norm, and added untrained (γ = 1, β = 0) on conversion to pre-norm. The parameters
    are shared, not copied: ``model`` is not changed.
    """
    config = replace(model.config, norm="post" if model.config.norm == "pre" else "pre")
    with torch.random.fork_rng(devices=[]):  # keeps torch's generator unchanged by the new model's first weights
        other = build_model(config)
    found = other.load_state_dict(model.state_dict(keep_vars=True), strict=False, assign=True)
    strange = [name for name in (*found.missing_keys, *found.unexpected_keys) if ".final_norm." not in f".{name}"]
    if strange:
        raise ValueError(f"the weights do not fit the other order of LayerNorm: {', '.join(strange[:3])}")
    return other.to(model.device).eval()


def experiment_with_bug(trace: Trace, fault: str) -> Experiment:
    """Run a trace again with a bug of the forward pass; both models generate outputs of limited length.

    Args:
        trace: The original run.
        fault: One of ``LIVE_FAULTS``, or ``HEALTHY``.
    """
    checkpoint = trace.checkpoint
    faulty, edits = inject_fault(checkpoint, fault)
    # A model with a bug may never end its text, and the effect of the bug shows early.
    longest = Greedy(2 * len(trace.tokens(trace.stacks[0])) + 10) if checkpoint.config.has_decoder else None
    return experiment(trace, edits, checkpoint=faulty, strategy=longest)


def padded_with_bug(trace: Trace, fault: str) -> Experiment:
    """Return ``experiment_with_bug`` on the padded run of ``trace``, with the outputs of both models."""
    run = trace.run
    run = padded(run, 0 if trace.source is None else len(trace.source) - run.source_pads)
    found = experiment_with_bug(trace if run == trace.run else trace_of(run), fault)
    _ = found.answer_before, found.answer_after
    return found


def padded(run: Run, n_tokens: int) -> Run:
    """Return the run with padding after the sentence: every case has it, so that padding reveals nothing.

    Args:
        run: A run without edits.
        n_tokens: The number of tokens of its source without padding; 0 for a model without an encoder.
    """
    if not n_tokens:
        return run
    most = run.checkpoint.config.max_length - n_tokens
    return replace(run, source_pads=max(0, min(max(PADS, run.source_pads), most)))
