"""Frames and JSON, both ways: what is encoded is decoded, anything else is BadInput, what is decoded can be stored."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd import wire
from csmd.errors import BadInput, TooLarge
from csmd.wire import MAX_BODY_BYTES, MAX_NAME_BYTES, PROTO, STATUSES, Reply, Request

ASCII = st.text(st.characters(max_codepoint=127), max_size=MAX_NAME_BYTES)
REQUESTS = st.builds(
    Request, id=ASCII, verb=ASCII, deadline_ms=st.integers(-(10**9), 10**9), host=ASCII, name=ASCII, body=st.binary(max_size=50),
    proto=st.integers(0, 10**6),
)  # fmt: skip
GOOD = wire.encode_request(Request(id="e1", verb="event", deadline_ms=250, host="claude", name="Stop", body=b"{}"))


@given(REQUESTS)
def test_a_request_comes_out_as_it_went_in(request: Request) -> None:
    assert wire.decode_request(wire.encode_request(request)) == request


@given(st.sampled_from(STATUSES), st.binary(max_size=50))
def test_a_reply_comes_out_as_it_went_in(status: Any, body: bytes) -> None:
    assert wire.decode_reply(wire.encode_reply(Reply(status=status, body=body))) == Reply(status=status, body=body)


@given(st.lists(st.binary(max_size=30), max_size=9))
def test_any_frames_are_a_request_or_bad_input(frames: list[bytes]) -> None:
    for decode in (wire.decode_request, wire.decode_reply):
        try:
            decode(frames)
        except BadInput as error:
            assert error.what


def with_frame(place: int, frame: bytes) -> list[bytes]:
    return [*GOOD[:place], frame, *GOOD[place + 1 :]]


@pytest.mark.parametrize("frames", [[], GOOD[:6], [b""] * 7, with_frame(0, b"x"), with_frame(0, b""), with_frame(3, b"soon"),
                                    with_frame(3, b"1.5"), with_frame(1, b"\xff"), with_frame(5, "é".encode())])  # fmt: skip
def test_a_request_of_another_shape_is_bad_input(frames: list[bytes]) -> None:
    with pytest.raises(BadInput):
        wire.decode_request(frames)


@pytest.mark.parametrize("place", range(6))
def test_a_head_frame_beyond_its_limit_is_too_large(place: int) -> None:
    with pytest.raises(TooLarge):
        wire.decode_request(with_frame(place, b"1" * (MAX_NAME_BYTES + 1)))


def test_a_body_is_accepted_up_to_its_limit() -> None:
    assert len(wire.decode_request(with_frame(6, bytes(MAX_BODY_BYTES))).body) == MAX_BODY_BYTES
    with pytest.raises(TooLarge):
        wire.decode_request(with_frame(6, bytes(MAX_BODY_BYTES + 1)))


def test_a_later_protocol_is_decoded_so_that_it_can_be_answered() -> None:
    assert wire.decode_request([*with_frame(0, str(PROTO + 1).encode()), b"more"]).proto == PROTO + 1


@pytest.mark.parametrize("frames", [[], [b"ok"], [b"ok", b"", b""], [b"OK", b""], [b"", b""], [b"\xff", b""]])
def test_a_reply_of_another_shape_is_bad_input(frames: list[bytes]) -> None:
    with pytest.raises(BadInput):
        wire.decode_reply(frames)


@pytest.mark.parametrize("data", [b"", b"{", b"{}{}", b"\xff", b"nul", "\ufeff{}", b"[" * 100_000, b"9" * 5000])
def test_what_is_no_json_is_bad_input(data: bytes | str) -> None:
    with pytest.raises(BadInput):
        wire.loads(data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(JSON)
def test_json_comes_out_as_it_went_in(value: Any) -> None:
    for text in (wire.dumps(value), wire.pretty(value), json.dumps(value)):
        assert wire.loads(text) == wire.loads(text.encode()) == value


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'"\\ud800"', "?"),
        (b'"a\\uDFFFb"', "a?b"),
        (b'{"\\ud800": ["\\udc00", {"x": "\\ud83d"}]}', {"?": ["?", {"x": "?"}]}),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\\\\ud800"', "\\ud800"),
        (b'"a\xffb"', "a\ufffdb"),
        ('"\ud800"', "?"),
        ('["é"]', ["é"]),
    ],
)
def test_what_is_decoded_can_be_stored(data: bytes | str, value: Any) -> None:
    decoded = wire.loads(data)
    assert decoded == value
    wire.dumps(decoded).encode("utf-8")


@given(st.text(st.characters() | st.sampled_from(["\0", "\ud800", "\udfff"])))
def test_cleaned_text_is_utf8_without_nul_and_cleaning_it_again_changes_nothing(text: str) -> None:
    cleaned = wire.clean(text)
    assert cleaned.encode("utf-8").decode("utf-8") == cleaned and "\0" not in cleaned
    assert wire.clean(cleaned) == cleaned
    if "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text):
        assert cleaned == text


def test_json_is_compact_keeps_its_order_and_other_letters() -> None:
    assert wire.dumps({"b": [1, 2], "a": "é"}) == '{"b":[1,2],"a":"é"}'
