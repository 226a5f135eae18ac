"""Sidebar of every page: checkpoint, language, presenter, examples, target, padding."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from transformer.config import ModelConfig
from transformer.files.layout import shown_name
from ui.compute.loading import choosable_checkpoints, group_of, readable_config
from ui.shell import focus as shared_focus
from ui.shell.focus import MAX_PADS, Focus, with_task
from ui.shell.focus_controls import from_focus, work_of
from ui.shell.openings import examples_of, label_of, name_in_list, shows_of
from ui.shell.picture import draw_picture
from ui.shell.picture.image import draw_image_choice
from ui.shell.sentence import PAUSE, is_sentence_read, spaces
from ui.words.texts import as_plain, common, languages


def sidebar() -> None:
    """Draw the sidebar once per run, before the page; widgets are set from the focus and store nothing."""
    focus = shared_focus.current()
    config = readable_config(focus.checkpoint)
    with st.sidebar:
        _checkpoint(focus)
        # Above what comes and goes with the sentence: nobody presses on something that has just moved away.
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            if not focus.presenter:
                _language(focus)
            _presenter(focus)
        spaces()["sidebar"] = st.container(gap="small")
        if config is not None and config.reads_images and not config.is_guest:
            draw_picture(focus, config)
            if not focus.presenter:
                with st.expander(common("sidebar.more_picture"), key="sidebar more"):
                    _picture_text(focus)
        elif config is not None and config.reads_images:
            draw_image_choice(focus, config)
        elif not focus.presenter and is_sentence_read():
            _examples(focus)
            with st.expander(_named_more(config), key="sidebar more"):
                _more(focus)


def _picture_text(focus: Focus) -> None:
    """Draw a box with the image as its text."""
    _shown(st.text_area, "sentence", focus.sentence, label="more_picture", height=68, help="picture_text")


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
    what_it_shows = st.empty()  # always, or the browser would draw anew what follows
    # For several tasks, a prefix precedes the example, whose text is about models of a single task.
    if shown and shown.sentence == focus.sentence and not focus.lesson:
        what_it_shows.caption(shows_of(shown))


def _checkpoint(focus: Focus) -> None:
    """Draw the choice of a model, with its task and its size; everything below is about this model."""
    names = choosable_checkpoints(focus.checkpoint)
    if not names:
        return
    _shown(st.selectbox, "checkpoint", focus.checkpoint, options=names, format_func=_in_group)
    if (config := readable_config(focus.checkpoint)) is not None:
        layers = max(config.n_encoder_layers, config.n_decoder_layers)
        size = common("sidebar.size", layers=layers, heads=_heads(config), width=config.d_model)
        family = [config.family] if config.is_guest else []
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
    group, shown = group_of(name), name_in_list(name)
    return shown if group == "shipped" else common(f"sidebar.{group}", name=shown_name(shown))


def _named_more(config: ModelConfig | None) -> str:
    """Return the name of the options that ``_more`` has for this model."""
    if config is None or (config.has_encoder and config.has_decoder):
        return common("sidebar.more")
    return common("sidebar.target" if config.has_decoder else "sidebar.pads")


def _more(focus: Focus) -> None:
    config = readable_config(focus.checkpoint)
    if config is None or config.has_decoder:
        placeholder = common("sidebar.target_placeholder")
        _shown(st.text_input, "target", focus.target, live=PAUSE, placeholder=placeholder)
    if config is None or config.has_encoder:
        _shown(st.number_input, "pads", min(focus.pads, MAX_PADS), min_value=0, max_value=MAX_PADS)


def _language(focus: Focus) -> None:
    """Draw the languages by their codes, next to the presenter's switch."""
    names = languages()
    if len(names) > 1:
        look = {"width": "content", "label_visibility": "collapsed", "required": True, "wrap": True}
        options = {"options": list(names), "format_func": str.upper, "help": ""}
        _shown(st.segmented_control, "language", focus.language, **options, **look)


def _presenter(focus: Focus) -> None:
    _shown(st.toggle, "presenter", bool(focus.presenter), changes=lambda on: {"presenter": int(on)}, help="")


def _shown(
    widget: Callable[..., Any], name: str, value: object, *, label: str = "", help: str | None = None, **more: Any
) -> None:
    """Draw a widget of a field of the focus, called ``sidebar.<name>``, with ``sidebar.<name>_help``."""
    help = common(f"sidebar.{help or name}_help") if help != "" else None
    more = {"changes": name, "key": f"sidebar {name}", "help": help} | more
    from_focus(widget, common(f"sidebar.{label or name}"), value=value, **more)


def _use_example() -> None:
    focus, number = shared_focus.current(), st.session_state["sidebar example"]
    found = examples_of(focus.checkpoint)
    if number is not None and number < len(found):
        example = found[number]
        shared_focus.change(sentence=with_task(example.sentence, focus), target=example.target, **example.place)
