"""The sections of Checkpoint: sizes, shares, card, weights, configuration; forms for another one."""

from dataclasses import asdict

import streamlit as st

import transformer
from charts.figures.bars import Bars, bars
from charts.toolkit.axes import Axis
from charts.toolkit.numbers import whole
from charts.toolkit.style import percent_digits
from charts.toolkit.words import localize
from transformer.errors import CheckpointError, InputError
from transformer.files.checkpoints import megabytes_on_disk
from transformer.files.fetch_package import fetch_package
from transformer.files.packaged_models import PACKAGED_MODELS, PackagedModel, installed_models, known_model
from transformer.files.received_files import MAX_BYTES, is_received
from transformer.guests.half_precision import held_in_half_precision
from transformer.layers.costs import parameter_statistics, shares_of_parts
from ui.compute.jobs import jobs
from ui.compute.loading import for_one_person, open_folder
from ui.compute.uploads import MOST_OWN, keep
from ui.page.page import Page
from ui.server.settings import public
from ui.server.settings import settings as server_settings
from ui.server.streamlit_private import forget_files
from ui.show.figures import show_figure
from ui.words.texts import Marked, as_plain, code, listed, problem_text, without_pictures

_ROUND = "upload form: round"  # a new key resets the widget
_ASKED, _TRY = "packaged model: asked for", "packaged model: round"


# ---- what is in the file --------------------------------------------------------------------------------------------


def sizes(p: Page) -> None:
    """Show how large the checkpoint is, and its fingerprint."""
    checkpoint, model = p.checkpoint, p.checkpoint.model
    with st.container(horizontal=True, gap="large"):  # columns would cut off the numbers in a narrow window
        st.metric(p.text["parameters"], whole(model.n_parameters), width="content")
        if not checkpoint.config.reads_images:
            st.metric(p.text["vocabulary"], whole(checkpoint.config.vocabulary_size), width="content")
        st.metric(p.text["size"], p.words("megabytes", size=megabytes_on_disk(checkpoint)), width="content")
        help = p.md("fingerprint_help", whole=Marked(checkpoint.fingerprint))
        st.metric(p.text["fingerprint"], checkpoint.short_fingerprint, help=help, width="content")
    if (half := held_in_half_precision(model)) is not None:
        p.say("in_memory", small=True, type=half.type, held=half.held / 1e9, wide=half.wide / 1e9)


def shares(p: Page) -> None:
    """Draw the distribution of the trained numbers over the parts of the model."""
    found = p.calc(shares_of_parts, p.checkpoint.model, name="shares", shows=("",))
    names = list(map(localize, found))
    (part, share), (other, rest) = (*zip(names, found.values(), strict=True), ("", 0.0))[:2]
    p.say("shares" if other else "shares_one", part=part, share=share, other=other, rest=rest)
    written = list(map(percent_digits, found.values()))
    figure = bars(Bars([100 * share for share in found.values()], texts=written), rows=Axis("", names))
    show_figure(figure, name="parameter-shares", alt=p.words("shares_alt"))


def card(p: Page) -> None:
    """Show the model card; as plain text if its Markdown could load images from another server."""
    checkpoint, received = p.checkpoint, is_received(p.focus.checkpoint)
    if received or (checkpoint.is_guest and known_model(checkpoint.path) is None):
        p.say("received" if received else "guest_card", small=True)
        st.code(checkpoint.card or p.words("no_card"), language=None, wrap_lines=True)
    else:
        st.markdown(without_pictures(checkpoint.card) or p.text["no_card"])


def weights(p: Page) -> None:
    """List every parameter."""
    found = p.calc(parameter_statistics, p.checkpoint.model, name="weights")
    rows = [asdict(one) | {"shape": " × ".join(map(str, one.shape))} for one in found]
    p.table(rows, name="parameters", height=520, caption=p.md("weights_caption"))


def settings(p: Page) -> None:
    """List the configuration."""
    rows = [{"field": name, "value": str(value)} for name, value in asdict(p.checkpoint.config).items()]
    p.table(rows, name="config", height=560)


def family(p: Page) -> None:
    """Name the class of ``transformers`` that computes a guest."""
    checkpoint, config, agreement = p.checkpoint, p.checkpoint.config, p.checkpoint.model.agreement
    p.say("computed", architecture=config.architecture, family=config.family)
    lengths = listed(map(whole, agreement.lengths), f" {p.text['and']} ")
    p.say(
        "agrees", maps=agreement.n_maps, lengths=lengths, attention=agreement.attention, hidden=agreement.hidden
    )  # fmt: skip
    if config.unshown_head:
        p.say("unshown_head", architecture=config.unshown_head)
    if config.image is not None and config.image.assumed:
        p.say("assumed_image", **dict(zip(("height", "across"), config.image.preprocessing.shape, strict=True)))
    if unread := checkpoint.unread:
        p.say("unread", small=True, count=len(unread), names=", ".join(unread[:20]))
    if checkpoint.adapter:
        p.say("adapter", small=True, base=checkpoint.adapter.base)


# ---- another checkpoint ---------------------------------------------------------------------------------------------


def packaged_form(p: Page) -> None:
    """Offer the known models that are not open, if the server has one user; install the chosen one."""
    if not for_one_person():
        return
    installed, opened = installed_models(), known_model(p.checkpoint.path)
    with st.expander(p.text["known"], icon=":material/download:", key="known models"):
        p.say("known_explained")
        with st.container(horizontal=True):
            for model in (model for model in PACKAGED_MODELS if model is not opened):
                key = "known_open" if model in installed else "known_install"
                label = p.md(key, title=model.title, megabytes=model.megabytes, licence=model.licence)
                st.button(label, key=f"packaged {model.name}", on_click=_ask, args=(model.name,))
        for model in PACKAGED_MODELS:
            if model.name == st.session_state.get(_ASKED):
                _bring(p, model)


def _ask(name: str) -> None:
    st.session_state[_ASKED] = name
    st.session_state[_TRY] = st.session_state.get(_TRY, 0) + 1  # each click is a new try


def _bring(p: Page, model: PackagedModel) -> None:
    """Install a model if it is missing, and open it; a sentence says why that fails."""
    try:
        path = jobs.result(
            model,
            ("package", st.session_state[_TRY]),
            lambda report: fetch_package(model, agree=lambda: True, wait=lambda: report(0, 1)),
            doing=p.words("known_installing", package=model.requirement),
        )
    except (InputError, CheckpointError, OSError) as error:
        st.warning(as_plain(problem_text(error)), icon=":material/download:")
        _forget()
        return
    if path is not None:
        _forget()
        p.set_focus(checkpoint=model.name)


def _forget() -> None:
    st.session_state.pop(_ASKED, None)


def upload_form(p: Page) -> None:
    """Accept a checkpoint's files, or on a public server list what is off and why.

    A sentence names what is wrong with the files, and the page stays as it was.
    """
    if public():
        with st.expander(p.text["public"], icon=":material/public:", key="public"):
            most = server_settings()
            named = {"characters": most.characters, "sessions": most.sessions, "idle_minutes": most.idle_minutes}
            p.say("public_explained", jobs=most.jobs, **named)
        return
    with st.expander(p.text["own"], icon=":material/upload:", key="upload"):
        if for_one_person():
            _folder_form(p)
        p.say("own_explained", files=listed(map(code, MAX_BYTES)), own=MOST_OWN)
        with st.form("upload form", border=False, enter_to_submit=False):
            sent = st.file_uploader(
                p.text["own_files"],
                accept_multiple_files=True,
                max_upload_size=max(MAX_BYTES.values()) // 1_000_000,
                key=f"upload {st.session_state.get(_ROUND, 0)}",
            )
            if not st.form_submit_button(p.text["own_open"], icon=":material/visibility:"):
                return
        try:
            name = keep({file.name: file.getvalue() for file in sent})
        except transformer.CheckpointError as error:
            st.warning(as_plain(problem_text(error)), icon=":material/upload:")
            return
        forget_files(sent)
        st.session_state[_ROUND] = st.session_state.get(_ROUND, 0) + 1
        p.set_focus(checkpoint=name)


def _folder_form(p: Page) -> None:
    """Draw the field for the path of a folder on this machine; only the local user can type one."""
    with st.form("folder form", border=False):
        typed = st.text_input(
            p.text["folder"], placeholder="~/models/opus-mt-en-fr", key="typed folder", max_chars=1000
        )
        if not st.form_submit_button(p.text["folder_open"], icon=":material/folder_open:") or not typed.strip():
            return
    try:
        name = open_folder(typed)
    except (transformer.CheckpointError, OSError) as error:
        st.warning(as_plain(problem_text(error)), icon=":material/folder_open:")
        return
    p.set_focus(checkpoint=name)
