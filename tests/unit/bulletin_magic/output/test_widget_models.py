"""Widgets of a cell as they are now: what a page that comes later is told of each."""

from typing import Any

from bulletin_magic.output.widget_models import WidgetModels


def said(name: str, **content: Any) -> dict[str, Any]:
    buffers = content.pop("buffers", ())
    return {"content": {"comm_id": name, **content}, "metadata": {"version": "2.1.0"}, "buffers": buffers}


def opened(name: str, state: dict[str, Any], **more: Any) -> tuple[str, dict[str, Any], int]:
    buffers = more.pop("buffers", ())
    data = {"state": state, "buffer_paths": more.pop("paths", [])}
    return "comm_open", said(name, target_name="jupyter.widget", data=data, buffers=buffers), 100


def updated(name: str, state: dict[str, Any], **more: Any) -> tuple[str, dict[str, Any], int]:
    data = {"method": "update", "state": state, "buffer_paths": more.get("paths", [])}
    return "comm_msg", said(name, data=data, buffers=more.get("buffers", ())), 100


def test_a_bar_of_many_steps_is_opened_at_its_last() -> None:
    models = WidgetModels()
    models.add(*opened("bar", {"value": 0, "max": 9}))
    for step in range(1_000):
        models.add(*updated("bar", {"value": step}))
    models.add("comm_msg", said("bar", data={"method": "custom", "content": {}}), 100)
    models.add(*updated("unknown", {"value": 1}))
    (message,) = models.messages()
    assert message["content"]["data"]["state"] == {"value": 999, "max": 9}
    assert message["content"]["target_name"] == "jupyter.widget"
    assert message["metadata"] == {"version": "2.1.0"}
    assert models.size_bytes < 1_000


def test_bytes_of_a_state_are_those_that_came_last() -> None:
    models = WidgetModels()
    models.add(*opened("image", {"format": "png"}, paths=[["value"], ["more", 0]], buffers=(b"old", b"kept")))
    models.add(*updated("image", {}, paths=[["value"]], buffers=(b"new",)))
    (message,) = models.messages()
    data = message["content"]["data"]
    assert dict(zip(map(tuple, data["buffer_paths"]), message["buffers"], strict=True)) == {
        ("value",): b"new",
        ("more", 0): b"kept",
    }


def test_parts_come_before_what_is_made_of_them_and_what_is_closed_is_gone() -> None:
    models = WidgetModels()
    for name in ("part", "gone", "box"):
        models.add(*opened(name, {}))
    models.add(*updated("part", {"value": 1}))
    models.add("comm_close", said("gone"), 10)
    assert [message["content"]["comm_id"] for message in models.messages()] == ["part", "box"]
    for name in ("part", "box"):
        models.add("comm_close", said(name), 10)
    assert models.size_bytes == 0
