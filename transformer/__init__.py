"""A Transformer in which every number can be inspected, changed and checked.

Names are loaded on first use (PEP 562), so ``from transformer.runs.traces import Trace`` does not import torch. Nothing
else is imported here: ``python -m transformer`` may still find modules of the current folder at this point.
"""

import importlib

_HOME = {
    "Activation": "runs.activation",
    "AttentionView": "runs.attention_view",
    "Trace": "runs.traces",
    "Run": "runs.run",
    "Token": "text.tokens",
    "TokenSequence": "text.tokens",
    "ModelConfig": "config",
    "InputError": "errors",
    "CheckpointError": "errors",
    "NotFiniteError": "errors",
    "TraceFileError": "errors",
    "Tokenizer": "text.tokenizer",
    "Edit": "probes",
    "Probe": "probes",
    "record": "probes",
    "fast_path": "fast.shortcut",
    "build_model": "files.build",
    "Checkpoint": "files.checkpoints",
    "load": "files.checkpoints",
    "snapshot": "files.snapshots",
    "snapshot_steps": "files.snapshots",
    "untrained": "files.untrained",
    "save": "files.checkpoints",
    "trace": "runs.tracing",
    "trace_of": "runs.tracing",
    "save_trace": "runs.trace_files",
    "read_trace": "runs.trace_files",
    "decode": "runs.decoding",
    "Decoding": "runs.decoding",
    "Greedy": "runs.decoding_strategies",
    "Sample": "runs.decoding_strategies",
    "Beam": "runs.decoding_strategies",
    "ablate_head": "runs.edits",
    "ablate_edge": "runs.edits",
    "override_mask": "runs.edits",
    "patch": "runs.edits",
    "mean_ablate_head": "runs.edits",
    "scale_head": "runs.edits",
    "patch_head": "runs.edits",
    "steer": "runs.edits",
    "remove_sublayer": "runs.edits",
    "remove_residual": "runs.edits",
    "edits_from": "runs.edit_specs",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'transformer' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"transformer.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
