#!/usr/bin/env python3
"""Check commit subjects: imperative mood, at most 72 characters, no full stop.

    .ci/subjects.py --message FILE   the message of one commit (.githooks/commit-msg)
    .ci/subjects.py                  every commit since BASE (.ci/run subjects)

Whether a word is an imperative cannot be known without a dictionary. This refuses the common ways of writing something
else: "Fixed", "Fixing", "Fixes", "The page …", "What …", "heads: …".
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

BASE = "bf2638caded6f6093c0078f93553bbd8f0b68675"  # older commits are not checked
LONGEST = 72
NOT_VERBS = re.compile(
    r"an?|all|and|another|any|as|at|both|but|by|each|every|few|for|from|he|here|how|i|if|in|into|it|its|many|more|most|"
    r"my|no|none|not|nothing|now|of|on|one|only|or|our|she|so|some|somebody|something|that|the|their|there|these|they|"
    r"this|those|three|to|two|we|what|when|where|whether|which|who|why|with|without|you|your"
)
ANOTHER_FORM = re.compile(r".+(ed|ing|[^s]s)")
# Verbs that end like a participle, a gerund or the third person.
VERBS = re.compile(r"bias|bring|embed|exceed|feed|focus|need|ping|proceed|seed|shed|speed|spring|string")
NOT_CHECKED = re.compile(r"Merge |Revert \"|(fixup|squash|amend)! ")


def problems(subject: str) -> list[str]:
    """Return what is wrong with a commit subject, one sentence each."""
    if NOT_CHECKED.match(subject):
        return []
    found = []
    if len(subject) > LONGEST:
        found.append(f"it has {len(subject)} characters; at most {LONGEST} are allowed")
    if subject.endswith("."):
        found.append("it ends with a full stop")
    first = subject.split(" ")[0]
    word = first.lower()
    if not re.fullmatch(r"[A-Z][a-z]+(-[a-z]+)*", first):
        found.append(f"it begins with {first!r}; begin with a capitalised verb, such as 'Fix'")
    elif NOT_VERBS.fullmatch(word) or (ANOTHER_FORM.fullmatch(word) and not VERBS.fullmatch(word)):
        found.append(f"it begins with {first!r}; begin with a verb in the imperative, such as 'Fix'")
    return found


def subject_in(message: str) -> str:
    """Return the first line of a commit message that is neither empty nor a comment; "" if there is none."""
    lines = (line.strip() for line in message.splitlines())
    return next((line for line in lines if line and not line.startswith("#")), "")


def subjects_since(base: str, folder: Path) -> list[str] | None:
    """Return the subjects since ``base``, without merges; ``None`` if git does not know ``base``."""
    command = ["git", "-C", str(folder), "log", "--no-merges", "--format=%s", f"{base}..HEAD"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    except FileNotFoundError:
        return None
    return answer.stdout.splitlines() if answer.returncode == 0 else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the commit subjects that the arguments name; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--message", type=Path, metavar="FILE", help="check the commit message in FILE only")
    chosen = parser.parse_args(arguments)
    if chosen.message:
        subject = subject_in(chosen.message.read_text(encoding="utf-8"))
        subjects = [subject] if subject else []  # git itself refuses an empty message
    else:
        found = subjects_since(BASE, Path(__file__).resolve().parents[1])
        if found is None:
            print(f"commit subjects are not checked: commit {BASE} is not in this copy")
            return 0
        subjects = found
    wrong = [f"{subject!r}: {'; '.join(what)}" for subject in subjects if (what := problems(subject))]
    for line in wrong:
        print(f"commit subject {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
