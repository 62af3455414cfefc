"""JSON and plain data to Structs and back, with errors that name the place.

The one spot where text becomes ``Quantity``; everything behind it works on integers.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec

from karpenter_linode.model.quantity import Quantity, QuantityError

T = TypeVar("T")
_TOO_DEEP: Final = "nested too deep"


class DecodeError(ValueError):
    """Data does not have the expected shape. The message names the field path, what was found and what was expected."""


def _dec_hook(kind: type, value: Any) -> Any:
    if kind is Quantity:
        if isinstance(value, str | int | float):
            try:
                return Quantity.parse(value)
            except QuantityError as error:
                raise ValueError(str(error)) from None
        msg = f"quantity expected, found {type(value).__name__}"
        raise ValueError(msg)
    msg = f"cannot decode {kind!r}"
    raise NotImplementedError(msg)


def _enc_hook(value: Any) -> Any:
    if isinstance(value, Quantity):
        return str(value)
    msg = f"cannot encode {type(value)!r}"
    raise NotImplementedError(msg)


_encoder = msgspec.json.Encoder(enc_hook=_enc_hook, decimal_format="number")
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def decode(data: bytes | str, kind: type[T]) -> T:
    """Decode JSON text into ``kind``.

    Raises:
        DecodeError: malformed JSON or a field of the wrong type; the message holds the path.
    """
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind, dec_hook=_dec_hook)
    try:
        result: T = decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise DecodeError(str(error)) from None
    except RecursionError:
        raise DecodeError(_TOO_DEEP) from None
    return result


def convert(value: Any, kind: type[T]) -> T:
    """Turn plain data (dicts, lists, scalars) into ``kind``. Nulls count as absent, as the API server treats them.

    Raises:
        DecodeError: a field of the wrong type; the message holds the path.
    """
    try:
        result: T = msgspec.convert(without_nulls(value), kind, dec_hook=_dec_hook)
    except msgspec.MsgspecError as error:
        raise DecodeError(str(error)) from None
    except RecursionError:
        raise DecodeError(_TOO_DEEP) from None
    return result


def encode(value: Any) -> bytes:
    """Compact JSON with quantities in canonical form."""
    return _encoder.encode(value)


def to_plain(value: Any) -> Any:
    """Dicts, lists and scalars, as JSON would carry them. Objects get no ``apiVersion`` and ``kind``; see ``kinds``."""
    return msgspec.json.decode(_encoder.encode(value))


def without_nulls(value: Any) -> Any:
    """A copy of plain data without null members of mappings (nulls in lists stay)."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value
