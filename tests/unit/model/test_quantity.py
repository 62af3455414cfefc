"""Kubernetes quantities: grammar, exactness, canonical form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karpenter_linode.model.quantity import BINARY_SI, DECIMAL_SI, NANO, Quantity, QuantityError

CANONICAL = [
    ("0", "0"),
    ("1000m", "1"),
    ("0.5", "500m"),
    (".5", "500m"),
    ("5.", "5"),
    ("+5", "5"),
    ("-1500m", "-1500m"),
    ("1.5Gi", "1536Mi"),
    ("2048Ki", "2Mi"),
    ("20475Mi", "20475Mi"),
    ("1023Ki", "1023Ki"),
    ("100Ki", "100Ki"),
    ("0.5Ki", "512"),
    ("24Gi", "24Gi"),
    ("100k", "100k"),
    ("1500k", "1500k"),
    ("1e3", "1e3"),
    ("1E3", "1e3"),
    ("1000e-3", "1"),
    ("12E", "12E"),
    ("1u", "1u"),
    ("1n", "1n"),
    ("0.1n", "1n"),
    ("8Ei", "9223372036854775807"),
    ("007", "7"),
]


@pytest.mark.parametrize(("text", "expected"), CANONICAL)
def test_written_form_is_canonical(text: str, expected: str) -> None:
    assert str(Quantity.parse(text)) == expected


@pytest.mark.parametrize(
    "text", ["", " 1", "1 ", "1x", "m", "1ki", "1MI", "--1", "1e", "1e1.5", "0x10", "1_000", "\u0661", "1Mi2", "1\n"]
)
def test_what_is_no_quantity_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(QuantityError) as caught:
        Quantity.parse(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("text", ["1e999999999", "9" * 100_000])
def test_hostile_sizes_end_at_once(text: str) -> None:
    with pytest.raises(QuantityError):
        Quantity.parse(text)


def test_notation_never_decides_equality() -> None:
    assert Quantity.parse("1Gi") == Quantity.parse("1073741824") == Quantity.parse("1073741824e0")
    assert hash(Quantity.parse("1Gi")) == hash(Quantity.parse("1073741824"))


def test_a_board_with_20475_mebibytes_has_less_than_20_gibibytes_and_more_than_16() -> None:
    memory = Quantity.parse("20475Mi")
    assert Quantity.parse("16Gi") <= memory < Quantity.parse("20Gi") < Quantity.parse("24Gi")


def test_numbers_of_yaml_stand_for_their_text() -> None:
    assert Quantity.parse(2) == Quantity.parse("2")
    assert Quantity.parse(0.1) == Quantity.parse("100m")
    with pytest.raises(QuantityError, match="boolean"):
        Quantity.parse(True)  # noqa: FBT003 - the value under test


def test_rounding_goes_up() -> None:
    assert Quantity.parse("500m").units == 1


def test_quantities_are_immutable() -> None:
    with pytest.raises(AttributeError):
        Quantity.parse("1").nano = 2  # type: ignore[misc]


@given(st.integers(-(2**63) + 1, 2**63 - 1), st.sampled_from([DECIMAL_SI, BINARY_SI]))
def test_whole_numbers_survive_writing_and_reading(units: int, notation: str) -> None:
    quantity = Quantity(units * NANO, notation)
    assert Quantity.parse(str(quantity)) == quantity


@given(st.integers(-(10**17), 10**17))
def test_nano_amounts_survive_writing_and_reading(nano: int) -> None:
    assert Quantity.parse(str(Quantity(nano))).nano == nano


@given(st.text(max_size=20))
def test_any_text_gives_a_quantity_or_a_quantity_error(text: str) -> None:
    try:
        quantity = Quantity.parse(text)
    except QuantityError:
        return
    assert Quantity.parse(str(quantity)) == quantity
