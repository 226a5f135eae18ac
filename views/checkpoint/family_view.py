"""A third-party checkpoint: its family, the mapping of its tensors, the check of both."""

from importlib.util import find_spec

import pandas as pd
import streamlit as st

from charts.toolkit.style import three_digits
from transformer.attribution.verify_images import verify_images
from transformer.disk.gguf_file import is_gguf
from transformer.errors import CheckpointError
from transformer.files.names import OWN_CODE
from transformer.files.verify import TOLERANCE, verify
from ui.compute.jobs import jobs
from ui.compute.loading import for_one_person, open_folder
from ui.page.page import Page
from ui.shell import focus as shared_focus
from ui.show.figures import show_table
from ui.words.figure_texts import problem_text
from ui.words.texts import as_plain

_ASKED = "checkpoint verified"


def family_view(p: Page) -> None:
    """Draw the building blocks of the checkpoint's family."""
    checkpoint = p.checkpoint
    st.markdown(
        p.text["family_is"].format(
            family=checkpoint.config.family, mapped=len(checkpoint.mapping), unread=len(checkpoint.unread)
        )
    )
    if checkpoint.unread:
        st.caption(p.text["unread"].format(names=as_plain(", ".join(checkpoint.unread[:20]))))
    _own_code(p)
    if checkpoint.adapter:
        st.caption(p.text["adapter"].format(base=as_plain(checkpoint.adapter.base)))
    else:
        _proof(p)
    rows = {"our name": checkpoint.mapping.keys(), "name in the file": checkpoint.mapping.values()}
    show_table(pd.DataFrame(rows), name="mapping", height=420, caption=p.text["mapping_caption"])


def _own_code(p: Page) -> None:
    """Offer to run the same folder with its own code in ``transformers``, or state that this is the case."""
    checkpoint = p.checkpoint
    if not checkpoint.model.own_code:
        st.caption(p.text["own_code_runs"])
        return
    folder = checkpoint.adapter.folder if checkpoint.adapter else checkpoint.path
    offered = for_one_person() and checkpoint.path.is_dir() and find_spec("transformers") is not None
    if not (offered and st.button(p.text["own_code"], key="run by own code", help=p.text["own_code_help"])):
        return
    try:
        name = open_folder(f"{OWN_CODE}{folder.resolve()}")
    except (CheckpointError, OSError) as error:
        st.warning(as_plain(problem_text(error)), icon=":material/folder_open:")
        return
    shared_focus.change(checkpoint=name)
    st.rerun()


def _proof(p: Page) -> None:
    """Draw a comparison with Hugging Face's implementation if it is installed, else the command for it."""
    command = f"python -m transformer verify {p.checkpoint_place}"
    if find_spec("transformers") is None:
        st.caption(p.text["verify_elsewhere"])
        st.code(command, language="bash")
        return
    asked, of_images = (p.checkpoint.path, p.checkpoint.fingerprint), p.checkpoint.config.reads_images
    kind = "_images" if of_images else "_gguf" if is_gguf(p.checkpoint.path) else ""
    if st.button(p.text["verify"], key="verify checkpoint", help=p.text[f"verify_help{kind}"]):
        st.session_state[_ASKED] = asked
    if st.session_state.get(_ASKED) != asked:
        return
    found = jobs.result(
        p.checkpoint,
        "verified",
        lambda report: (verify_images if of_images else verify)(p.checkpoint, progress=report),
        doing=p.text["verifying_images" if of_images else "verifying"],
        passes=1,
    )
    if found is None:
        return
    agrees, worst = all(row.agrees for row in found), max(row.largest for row in found)
    said = p.text[("verified_images" if of_images else "verified") if agrees else "refuted"].format(
        worst=three_digits(worst), tolerance=three_digits(TOLERANCE), lengths=len(found)
    )
    (st.success if agrees else st.error)(said)
    rows = [
        {
            "tokens": row.length,
            "largest difference of logits": three_digits(row.logits),
            "largest difference of attention": three_digits(row.attention),
            "in the map": row.map,
        }
        for row in found
    ]
    show_table(pd.DataFrame(rows), name="verification")
