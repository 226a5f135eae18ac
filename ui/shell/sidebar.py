"""Sidebar of every page: checkpoint, examples, target, padding, language, presenter."""

from contextvars import ContextVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from transformer.config import ModelConfig, PictureConfig
from transformer.files.layout import shown_name
from transformer.guests.guest_config import GuestConfig
from ui.compute.loading import choosable_checkpoints, group_of, readable_config
from ui.shell import focus as shared_focus
from ui.shell.focus import MAX_PADS, Focus, with_task
from ui.shell.openings import examples_of, label_of, name_in_list, shows_of
from ui.shell.picture import draw_picture
from ui.shell.picture.image import draw_image_choice
from ui.shell.selectors import work_of
from ui.shell.sentence import PAUSE, is_sentence_read
from ui.words.texts import as_plain, common, languages

# Where this run's sidebar has space for how the model reads the sentence, above the examples.
_room: ContextVar[DeltaGenerator | None] = ContextVar("room", default=None)


def take_room() -> DeltaGenerator | None:
    """Return that space, once per run; ``None`` if this run has drawn no sidebar."""
    room = _room.get()
    _room.set(None)
    return room


def sidebar() -> None:
    """Draw the sidebar once per run, before the page; widgets are set from the focus and store nothing."""
    focus = shared_focus.current()
    config = readable_config(focus.checkpoint)
    with st.sidebar:
        _checkpoint(focus)
        if isinstance(config, PictureConfig):
            room = st.container(gap="small")
            draw_picture(focus, config)
            if not focus.presenter:
                with st.expander(common("sidebar.more_picture"), key="sidebar more"):
                    _picture_text(focus)
        elif config is not None and config.reads_images:
            room = st.container(gap="small")
            draw_image_choice(focus, config)
        else:
            room = st.container(gap="small")
            if not focus.presenter and is_sentence_read():
                _examples(focus)
                with st.expander(_named_more(config), key="sidebar more"):
                    _more(focus)
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            if not focus.presenter:
                _language(focus)
            _presenter(focus)
    _room.set(room)


def _picture_text(focus: Focus) -> None:
    """Draw a box with the image as its text."""
    _set("sentence", focus.sentence)
    st.text_area(
        common("sidebar.more_picture"),
        key="sidebar sentence",
        height=68,
        help=common("sidebar.picture_text_help"),
        on_change=_report,
        args=("sentence",),
    )


def _examples(focus: Focus) -> None:
    """Draw a menu of examples with their sentences, and what the current one shows.

    During a lesson its step says what to notice.
    """
    found, now = examples_of(focus.checkpoint), (focus.sentence, focus.target)
    st.menu_button(
        common("sidebar.examples"),
        range(len(found)),
        format_func=lambda number: f"**{as_plain(label_of(found[number]))}** {as_plain(found[number].sentence)}",
        icon=":material/lists:",
        width="stretch",
        key="sidebar example",
        on_click=_use_example,
    )
    shown = next((each for each in found if (with_task(each.sentence, focus), each.target) == now), None)
    # For several tasks, a prefix precedes the example, whose text is about models of a single task.
    if shown and shown.sentence == focus.sentence and not focus.lesson:
        st.caption(shows_of(shown))


def _checkpoint(focus: Focus) -> None:
    """Draw the choice of a model, with its task and its size; everything below is about this model."""
    names = choosable_checkpoints(focus.checkpoint)
    if not names:
        return
    _set("checkpoint", focus.checkpoint)
    st.selectbox(
        common("sidebar.checkpoint"),
        names,
        format_func=_in_group,
        key="sidebar checkpoint",
        help=common("sidebar.checkpoint_help"),
        on_change=_report,
        args=("checkpoint",),
    )
    if (config := readable_config(focus.checkpoint)) is not None:
        layers = max(config.n_encoder_layers, config.n_decoder_layers)
        size = common("sidebar.size", layers=layers, heads=_heads(config), width=config.d_model)
        family = [config.family] if isinstance(config, GuestConfig) else []
        work = "picture" if config.reads_images else work_of(config)
        if config.encodes_sentences:
            work = "image_vector" if config.reads_images else "vector"
        if work == "text-to-text" and not config.task_prefixes:
            work = "answer"
        # The box has room for the task alone; the folder, which links and the command line use, is shown here.
        does = focus.checkpoint if name_in_list(focus.checkpoint) != focus.checkpoint else common(f"task.{work}")
        st.caption(" · ".join((does, *family, size)))


def _heads(config: ModelConfig) -> str:
    """Return the number of heads in a layer, for each stack if they differ: "6" or "2 + 4"."""
    stacks = [stack for stack, has in (("encoder", config.has_encoder), ("decoder", config.has_decoder)) if has]
    return " + ".join(dict.fromkeys(str(config.heads_in(stack)) for stack in stacks))


def _in_group(name: str) -> str:
    """Return a name for the list, with its origin unless it is included with the app."""
    group = group_of(name)
    shown = shown_name(name_in_list(name))
    return shown if group == "shipped" else common(f"sidebar.{group}", name=shown)


def _named_more(config: ModelConfig | None) -> str:
    """Return the name of the options that ``_more`` has for this model."""
    if config is None or (config.has_encoder and config.has_decoder):
        return common("sidebar.more")
    return common("sidebar.target" if config.has_decoder else "sidebar.pads")


def _more(focus: Focus) -> None:
    config = readable_config(focus.checkpoint)
    if config is None or config.has_decoder:
        _set("target", focus.target)
        st.text_input(
            common("sidebar.target"),
            key="sidebar target",
            live=PAUSE,
            placeholder=common("sidebar.target_placeholder"),
            help=common("sidebar.target_help"),
            on_change=_report,
            args=("target",),
        )
    if config is None or config.has_encoder:
        _set("pads", min(focus.pads, MAX_PADS))
        st.number_input(
            common("sidebar.pads"),
            min_value=0,
            max_value=MAX_PADS,
            key="sidebar pads",
            help=common("sidebar.pads_help"),
            on_change=_report,
            args=("pads",),
        )


def _language(focus: Focus) -> None:
    """Draw the languages by their codes, next to the presenter's switch."""
    names = languages()
    if len(names) > 1:
        st.session_state["sidebar language"] = focus.language  # nothing is being typed here that this could overwrite
        st.segmented_control(
            common("sidebar.language"),
            list(names),
            format_func=str.upper,
            key="sidebar language",
            width="content",
            label_visibility="collapsed",
            required=True,
            wrap=True,
            on_change=_report,
            args=("language",),
        )


def _presenter(focus: Focus) -> None:
    st.session_state["sidebar presenter"] = bool(focus.presenter)
    st.toggle(
        common("sidebar.presenter"),
        key="sidebar presenter",
        help=common("sidebar.presenter_help"),
        on_change=lambda: shared_focus.change(presenter=int(st.session_state["sidebar presenter"])),
    )


def _set(name: str, value: object) -> None:
    """Set a value only if it differs: setting it again would overwrite what is being typed."""
    key = f"sidebar {name}"
    if key not in st.session_state or st.session_state[key] != value:
        st.session_state[key] = value


def _report(name: str) -> None:
    """Handle a choice; a message not made by our page may report that nothing is chosen, which is ignored."""
    if (chosen := st.session_state[f"sidebar {name}"]) is not None:
        shared_focus.change(**{name: chosen})


def _use_example() -> None:
    focus, number = shared_focus.current(), st.session_state["sidebar example"]
    found = examples_of(focus.checkpoint)
    if number is not None and number < len(found):
        example = found[number]
        shared_focus.change(sentence=with_task(example.sentence, focus), target=example.target, **example.place)
