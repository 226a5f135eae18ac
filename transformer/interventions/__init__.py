"""Effects of removing or replacing parts of a run: ablation, patching, edits."""
