"""Durations as Go writes them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpenter_linode.model.duration import DurationError, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("0s", 0),
        ("1h30m", 5400),
        ("15s", 15),
        ("250ms", 0.25),
        ("1.5h", 5400),
        ("-2m", -120),
        (".5s", 0.5),
        ("720h", 2592000),
    ],
)
def test_reading(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "-", "1", "1d", "h", "1h 30m", "Never", "1h" * 40, "9999999999h"])
def test_what_is_no_duration_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(DurationError) as caught:
        parse_duration(text)
    assert repr(text) in str(caught.value)


@given(st.integers(-10_000_000, 10_000_000))
def test_written_durations_read_back(seconds: int) -> None:
    duration = timedelta(seconds=seconds)
    assert parse_duration(format_duration(duration)) == duration
