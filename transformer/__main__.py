"""``python -m transformer {train,snapshots,translate,trace,evaluate,inspect}``."""

from transformer.command_line import main

if __name__ == "__main__":
    raise SystemExit(main())
