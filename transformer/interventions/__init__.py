"""What changes when a part of a run is removed or replaced: ablation, patching, edits."""
