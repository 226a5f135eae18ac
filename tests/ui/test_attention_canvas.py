"""Canvas functions inside Streamlit: the right bytes are mounted, and no text becomes markup."""

from __future__ import annotations

import re
import zlib

from streamlit.testing.v1 import AppTest

from charts.canvas.module import FOLDER, canvas_module
from charts.toolkit.payload_bytes import unpack


def script() -> None:
    import numpy

    from charts.canvas.attention_maps import attention_grid, attention_lines, attention_map, mask_editor
    from charts.canvas.value_map import value_map
    from tests.drawings.record import view
    from ui.shell.frame import bring_canvas
    from ui.show.drawings import show_grid, show_lines, show_map, show_mask_editor

    bring_canvas()
    labels = {"row_labels": ["a", "b"], "column_labels": ["c", "d"], "row_title": "row", "column_title": "column"}

    rows, columns = ["a", "b", "c"], ["d", "e", "f", "g"]
    seen = view(rows, columns, kind="cross")
    show_map(attention_map(seen, head=1, selected=(2, 3)), key="map", on_click=print)
    values = numpy.array([[1.0, -2.0], [0.0, 3.0]])
    show_map(value_map(values, scale="diverging", **labels), key="values")
    grid = attention_grid([seen, view(rows, columns, kind="cross", layer=1)], selected=(1, 0))
    show_grid(grid, key="grid")
    show_lines(attention_lines(seen, heads=[1]), key="lines")
    show_mask_editor(mask_editor(seen, head=0, own=seen.allowed), key="mask", on_paint=print)


def opened() -> AppTest:
    return AppTest.from_string("from tests.ui.test_attention_canvas import script\n\nscript()").run()


def test_each_drawing_is_mounted_with_its_own_bytes_and_the_script_travels_once() -> None:
    app = opened()
    assert not app.exception
    brought, *mounted = [element.proto for element in app.main if element.type == "bidi_component"]
    metadata = [unpack(proto.bytes)[0] for proto in mounted]
    assert [one["kind"] for one in metadata] == ["map", "map", "grid", "lines", "mask"]
    assert metadata[0]["selected"] == [2, 3]
    assert "still" not in metadata[0] and metadata[1]["still"] is True, "nothing happens at a click"
    assert brought.component_name == "glassformer_canvas_script"
    assert zlib.decompress(brought.bytes).decode() == canvas_module()
    assert len(brought.bytes) < 70_000, "the living picture is half of it"
    for proto in mounted:
        assert proto.component_name == "glassformer_canvas" and proto.isolate_styles
        assert proto.html_content == proto.css_content == "", "the script contains its own, packed"
        assert len(proto.js_content) + len(proto.bytes) < 3_000, "with these few numbers"


def test_tokens_never_become_markup() -> None:
    doors = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(")
    scripts = [path for path in FOLDER.rglob("*.js") if path.name != "pdf.bundle.js"]  # a library that we do not call
    assert not [path.name for path in scripts if doors.search(path.read_text(encoding="utf-8"))]
