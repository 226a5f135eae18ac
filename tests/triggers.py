"""A click on a component, which ``AppTest`` lacks."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from tests.harness.widget_states import event_state


def trigger(app: AppTest, key: str, event: str, value: object) -> AppTest:
    """Send ``setTriggerValue(event, value)`` for the component with that key, which reruns the page."""
    shown = [element.proto.id for element in app if element.type == "bidi_component"]
    (id,) = [id for id in shown if id.endswith(f"-{key}")]
    states = app._tree.get_widget_states()
    states.widgets.append(event_state(id, event, value))
    return app._run(states)
