"""Settings with which Hugging Face's libraries contact no hub, whatever a file names."""

import os
import sys

DOWNLOADS = "fetch"  # the only command of this project that downloads
SETTINGS = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}


def stay_offline() -> None:
    """Take this process and those that it starts offline, unless its command is ``fetch``.

    Call it before any other import, because the libraries read these variables when they are imported.
    """
    if sys.argv[1:2] != [DOWNLOADS]:
        os.environ.update(SETTINGS)
