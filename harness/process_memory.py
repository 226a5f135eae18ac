"""How much memory a process takes, by Linux."""

from pathlib import Path


def status_megabytes(field: str, process: int | str = "self") -> float:
    """``field``: "VmRSS", what is resident now, or "VmHWM", the most that was. 0 when the process has ended."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    found = [int(line.split()[1]) for line in lines if line.startswith(f"{field}:")]
    return found[0] * 1024 / 1e6 if found else 0.0
