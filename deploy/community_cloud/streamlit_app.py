"""Entry for Streamlit Community Cloud (docs/hosting.md): the same app as a public server."""

import os
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

os.environ.setdefault("GLASSFORMER_PUBLIC", "1")  # before anything reads it
if str(ROOT) not in sys.path:  # Streamlit adds only the folder of the entry
    sys.path.insert(0, str(ROOT))
runpy.run_path(str(ROOT / "app.py"))
