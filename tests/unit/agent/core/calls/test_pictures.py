"""Pictures in what server tools return."""

from base64 import b64encode
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.agent.core.calls import pictures
from services.agent.core.calls.pictures import MOST_PICTURES, split_pictures
from services.agent.core.messages import Image

PNG = b64encode(b"\x89PNG\r\n\x1a\n and more").decode()


def picture(data: Any = PNG, media_type: Any = "image/png", kind: str = "base64") -> dict[str, Any]:
    return {"type": "image", "source": {"type": kind, "media_type": media_type, "data": data}}


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


@pytest.mark.parametrize(
    ("value", "text", "count"),
    [
        (picture(), "", 1),
        ([picture()], "", 1),
        ([said("Before."), picture(), said("After."), picture()], "Before.\nAfter.", 2),
        # As the reference's tools return data: as JSON text.
        (orjson.dumps([said("Look."), picture()]).decode(), "Look.", 1),
    ],
)
def test_a_tool_returns_pictures(value: Any, text: str, count: int) -> None:
    assert split_pictures(orjson.dumps(value).decode()) == (text, (Image(data=PNG, media_type="image/png"),) * count)


@pytest.mark.parametrize("begins", [b"\xff\xd8\xff\xe0", b"GIF89a", b"RIFF\0\0\0\0WEBPVP8 "])
def test_formats(begins: bytes) -> None:
    data = b64encode(begins).decode()
    types = {_taken(data, kind) for kind in ("image/png", "image/jpeg", "image/gif", "image/webp")}
    assert len(types) == 1
    assert types != {""}


def _taken(data: str, media_type: str) -> str:
    found = split_pictures(orjson.dumps(picture(data, media_type)).decode())
    return found[1][0].media_type if found is not None and found[1] else ""


@pytest.mark.parametrize(
    "value",
    [
        "an image of it",
        {"image": 1},
        {"type": "image"},
        [said("image")],
        [picture(), 7],
        [picture(), {"type": "video"}],
        [],
        None,
        {"kind": {"type": "image"}},
    ],
)
def test_other_data_is_no_picture(value: Any) -> None:
    assert split_pictures(orjson.dumps(value).decode()) is None


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (picture(kind="url"), "its source must be base64"),
        (picture(data=None), "its source must be base64"),
        (picture(data="?"), "its data is not base64"),
        (picture(data="é"), "its data is not base64"),
        (picture(data=b64encode(b"<svg>").decode()), "its data is none of image/png"),
    ],
)
def test_what_no_provider_would_take_is_told(wrong: dict[str, Any], why: str) -> None:
    found = split_pictures(orjson.dumps([said("Look."), wrong, picture()]).decode())
    assert found is not None
    text, images = found
    assert text.startswith("Look.\n[a picture cannot be shown: ")
    assert why in text
    assert len(images) == 1


@pytest.mark.parametrize("label", ["image/jpg", "image/tiff", "", None, ["image/png"]])
def test_the_bytes_say_what_a_picture_is(label: Any) -> None:
    found = split_pictures(orjson.dumps(picture(media_type=label)).decode())
    assert found is not None
    assert [image.media_type for image in found[1]] == ["image/png"]


def test_pictures_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    many = split_pictures(orjson.dumps([picture()] * (MOST_PICTURES + 2)).decode())
    assert many is not None
    assert (len(many[1]), many[0].count("too much")) == (MOST_PICTURES, 2)
    monkeypatch.setattr(pictures, "MOST_PICTURE_BYTES", 40)
    heavy = split_pictures(orjson.dumps([picture()] * 3).decode())
    assert heavy is not None
    assert (len(heavy[1]), heavy[0].count("too much")) == (2, 1)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(["image", "text", "base64", PNG, ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "source", "data", "text", "media_type"]), inner, max_size=5)
    ),
)


@given(_JSON)
def test_no_result_is_an_obstacle(value: Any) -> None:
    found = split_pictures(orjson.dumps(value).decode())
    assert found is None or all(image.data for image in found[1])


@pytest.mark.parametrize("result", ["", "image", '{"image', '"image'])
def test_what_is_not_json(result: str) -> None:
    assert split_pictures(result) is None
