"""The names that `__init__.py` loads on first use, for editors and type checkers."""

from transformer.config import ModelConfig as ModelConfig
from transformer.errors import CheckpointError as CheckpointError
from transformer.errors import InputError as InputError
from transformer.errors import NotFiniteError as NotFiniteError
from transformer.errors import TraceFileError as TraceFileError
from transformer.fast.shortcut import fast_path as fast_path
from transformer.files.build import build_model as build_model
from transformer.files.checkpoints import Checkpoint as Checkpoint
from transformer.files.checkpoints import load as load
from transformer.files.checkpoints import save as save
from transformer.files.snapshots import snapshot as snapshot
from transformer.files.snapshots import snapshot_steps as snapshot_steps
from transformer.files.untrained import untrained as untrained
from transformer.probes import Edit as Edit
from transformer.probes import Probe as Probe
from transformer.probes import record as record
from transformer.runs.activation import Activation as Activation
from transformer.runs.attention_view import AttentionView as AttentionView
from transformer.runs.decoding import Decoding as Decoding
from transformer.runs.decoding import decode as decode
from transformer.runs.decoding_strategies import Beam as Beam
from transformer.runs.decoding_strategies import Greedy as Greedy
from transformer.runs.decoding_strategies import Sample as Sample
from transformer.runs.edit_specs import edits_from as edits_from
from transformer.runs.edits import ablate_edge as ablate_edge
from transformer.runs.edits import ablate_head as ablate_head
from transformer.runs.edits import mean_ablate_head as mean_ablate_head
from transformer.runs.edits import override_mask as override_mask
from transformer.runs.edits import patch as patch
from transformer.runs.edits import patch_head as patch_head
from transformer.runs.edits import remove_residual as remove_residual
from transformer.runs.edits import remove_sublayer as remove_sublayer
from transformer.runs.edits import scale_head as scale_head
from transformer.runs.edits import steer as steer
from transformer.runs.run import Run as Run
from transformer.runs.trace_files import read_trace as read_trace
from transformer.runs.trace_files import save_trace as save_trace
from transformer.runs.traces import Trace as Trace
from transformer.runs.tracing import trace as trace
from transformer.runs.tracing import trace_of as trace_of
from transformer.text.tokenizer import Tokenizer as Tokenizer
from transformer.text.tokens import Token as Token
from transformer.text.tokens import TokenSequence as TokenSequence

__all__: list[str]
