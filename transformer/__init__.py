"""A Transformer whose every number can be looked at, changed and checked.

Names load on first use (PEP 562), so that ``from transformer.traces import Trace`` does not import torch.
"""

from __future__ import annotations

import importlib

_HOME = {
    "Activation": "activation",
    "AttentionView": "attention_view",
    "Trace": "traces",
    "Token": "tokens",
    "TokenSequence": "tokens",
    "ModelConfig": "config",
    "InputError": "errors",
    "CheckpointError": "errors",
    "TraceFileError": "errors",
    "Tokenizer": "tokenizer",
    "Edit": "probes",
    "Probe": "probes",
    "record": "probes",
    "fast_path": "probes",
    "build_model": "models",
    "Checkpoint": "checkpoint",
    "load": "checkpoint",
    "snapshot": "snapshots",
    "snapshot_steps": "snapshots",
    "save": "checkpoint",
    "trace": "tracing",
    "save_trace": "trace_files",
    "read_trace": "trace_files",
    "decode": "decoding",
    "Decoding": "decoding",
    "Greedy": "strategies",
    "Sample": "strategies",
    "Beam": "strategies",
    "ablate_head": "edits",
    "ablate_edge": "edits",
    "override_mask": "edits",
    "patch": "edits",
    "mean_ablate_head": "edits",
    "scale_head": "edits",
    "patch_head": "edits",
    "remove_sublayer": "sublayer_edits",
    "remove_residual": "sublayer_edits",
    "edits_from": "edit_specs",
}

__all__ = sorted(_HOME)


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module 'transformer' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"transformer.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
