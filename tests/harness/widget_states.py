"""States of widgets as a browser sends them: each value in the field for its kind."""

import json
from collections.abc import Callable

from google.protobuf.message import Message
from streamlit.components.v2.bidi_component.constants import EVENT_DELIM
from streamlit.proto.Element_pb2 import Element
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime.state.session_state import STREAMLIT_INTERNAL_KEY_PREFIX


def shown_state(element: Element) -> WidgetState | None:
    """Return the state of a widget as the server draws it; ``None`` if it has none before it is used."""
    kind = element.WhichOneof("type")
    if kind not in _WRITERS:
        return None
    widget = getattr(element, kind)
    state = WidgetState(id=widget.id)
    _WRITERS[kind](widget, state)
    return state


def is_set(element: Element) -> bool:
    """Return whether the server wants this widget to take over the value that it sends."""
    return bool(getattr(getattr(element, element.WhichOneof("type") or "", None), "set_value", False))


def widget_id(element: Element) -> str:
    """Return the id of a widget or component; "" for everything else."""
    return getattr(getattr(element, element.WhichOneof("type") or "", None), "id", "")


def event_state(component_id: str, event: str, value: object) -> WidgetState:
    """Return the state for a component's ``setTriggerValue(event, value)``, which lasts for one run."""
    id = f"{STREAMLIT_INTERNAL_KEY_PREFIX}_{component_id}{EVENT_DELIM}events"
    return WidgetState(id=id, json_trigger_value=json.dumps([{"event": event, "value": value}]))


def _text(widget: Message, state: WidgetState) -> None:
    state.string_value = widget.value if widget.set_value else widget.default


def _bool(widget: Message, state: WidgetState) -> None:
    state.bool_value = widget.value if widget.set_value else widget.default


def _number(widget: Message, state: WidgetState) -> None:
    value = widget.value if widget.set_value else widget.default
    if widget.data_type == widget.INT:
        state.int_value = int(value)
    else:
        state.double_value = value


def _slider(widget: Message, state: WidgetState) -> None:
    if widget.type == widget.SELECT_SLIDER:
        chosen = widget.raw_value if widget.set_value else [widget.options[int(place)] for place in widget.default]
        state.string_array_value.data.extend(chosen)
    else:
        state.double_array_value.data.extend(widget.value if widget.set_value else widget.default)


def _one_option(widget: Message, state: WidgetState) -> None:
    """Set the selected option; without a default, none is selected."""
    if widget.set_value:
        if widget.HasField("raw_value"):
            state.string_value = widget.raw_value
    elif widget.HasField("default") and widget.options:
        state.string_value = widget.options[widget.default]


def _buttons(widget: Message, state: WidgetState) -> None:
    chosen = widget.raw_values if widget.set_value else [_label(widget.options[place]) for place in widget.default]
    state.string_array_value.data.extend(chosen)


def _label(option: Message) -> str:
    """Return the label of an option, which includes its icon."""
    return f"{option.content_icon} {option.content}".strip()


_WRITERS: dict[str, Callable[[Message, WidgetState], None]] = {
    "text_area": _text,
    "text_input": _text,
    "checkbox": _bool,
    "number_input": _number,
    "slider": _slider,
    "selectbox": _one_option,
    "radio": _one_option,
    "button_group": _buttons,
}
