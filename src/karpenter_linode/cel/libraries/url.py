"""URLs as Go's ``url.ParseRequestURI`` reads them (spec/cel-for-dra.md 5.7): an absolute URI or an absolute path."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from karpenter_linode.cel.cost import traversal
from karpenter_linode.cel.declarations import Argument, Estimate, Library, Overload, function, method
from karpenter_linode.cel.errors import EvaluationError
from karpenter_linode.cel.relations import register_strict
from karpenter_linode.cel.types import BOOL, STRING, URL, Type, list_of, map_of
from karpenter_linode.cel.values import register_kind

if TYPE_CHECKING:
    from collections.abc import Callable

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_USER: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_HOST: Final = re.compile(r"(?:[A-Za-z0-9\-_.~!$&'()*+,;=<>\"]|[^\x00-\x7f]|%[89A-Fa-f][0-9A-Fa-f])*(?::[0-9]*)?")
_BRACKETS: Final = re.compile(r"\[(?:[0-9A-Fa-f:.]+)(?:%25[^\]]+)?\](?::[0-9]*)?")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_PATH_AS_IT_IS: Final = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:@/\[\]%]*")
_PATH_SAFE: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~$&+,/:;=@")
_ESCAPE: Final = re.compile(rb"%([0-9A-Fa-f]{2})")


class Url:
    """The parts of a URL, none of them decoded."""

    __slots__ = ("host", "path", "query", "scheme", "text")

    def __init__(self, text: str, scheme: str, host: str, path: str, query: str) -> None:
        self.text = text
        self.scheme = scheme
        self.host = host
        self.path = path
        self.query = query

    def __eq__(self, other: object) -> bool:
        return type(other) is Url and other._parts() == self._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[str, str, str, str]:
        return self.scheme, self.host, self.path, self.query


register_kind(Url, "kubernetes.URL")
register_strict(Url)


def _refused(text: str, why: str) -> EvaluationError:
    return EvaluationError(f'URL parse error during conversion from string: parse "{text[:80]}": {why}')


def parse_url(text: str) -> Url:
    """Read a URL.

    Raises:
        EvaluationError: it is none; the message says why.
    """
    if not text:
        raise _refused(text, "empty url")
    if _CONTROL.search(text):
        raise _refused(text, "invalid control character in URL")
    found = _SCHEME.match(text)
    scheme = found[1].lower() if found else ""
    rest, _, query = text[found.end() if found else 0 :].partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(text, scheme, "", "", query)
        raise _refused(text, "missing protocol scheme" if text[0] == ":" else "invalid URI for request")
    host = ""
    if scheme and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        host = _host(text, authority)
    if _BAD_ESCAPE.search(rest):
        raise _refused(text, "invalid URL escape")
    return Url(text, scheme, host, rest, query)


def _host(text: str, authority: str) -> str:
    user, at, host = authority.rpartition("@")
    if at and not _USER.fullmatch(user):
        raise _refused(text, "net/url: invalid userinfo")
    pattern = _BRACKETS if host.startswith("[") else _HOST
    if not pattern.fullmatch(host):
        raise _refused(text, "invalid character or port in host name")
    return _decoded(host)


def _decoded(text: str) -> str:
    return _ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), text.encode()).decode(errors="replace")


def _is_url(text: str) -> bool:
    try:
        parse_url(text)
    except EvaluationError:
        return False
    return True


def _escaped_path(url: Url) -> str:
    if _PATH_AS_IT_IS.fullmatch(url.path):
        return url.path
    decoded = _ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), url.path.encode())
    return "".join(chr(byte) if byte in _PATH_SAFE else f"%{byte:02X}" for byte in decoded)


def _hostname(url: Url) -> str:
    if url.host.startswith("["):
        return url.host[1:].partition("]")[0]
    return url.host.partition(":")[0]


def _port(url: Url) -> str:
    return url.host.rpartition("]")[2].partition(":")[2]


def _query(url: Url) -> dict[str, list[str]]:
    made: dict[str, list[str]] = {}
    for piece in url.query.split("&"):
        # what cannot be read is left out, as in Go
        if not piece or ";" in piece or _BAD_ESCAPE.search(piece):
            continue
        key, _, value = piece.partition("=")
        made.setdefault(_decoded(key.replace("+", " ")), []).append(_decoded(value.replace("+", " ")))
    return made


def _estimate(arguments: tuple[Argument, ...]) -> Estimate:
    return Estimate(arguments[0].size.tenths(), arguments[0].size)


def _part(name: str, read: Callable[[Url], object], result: Type = STRING) -> tuple[Overload, ...]:
    return (method(f"url_{name}", (URL,), result, read),)


_OVERLOADS: Final = {
    "url": (function("string_to_url", (STRING,), URL, parse_url, cost=traversal, estimate=_estimate, folding="lazy"),),
    "isURL": (function("is_url", (STRING,), BOOL, _is_url),),
    "getScheme": _part("get_scheme", lambda url: url.scheme),
    "getHost": _part("get_host", lambda url: url.host),
    "getHostname": _part("get_hostname", _hostname),
    "getPort": _part("get_port", _port),
    "getEscapedPath": _part("get_escaped_path", _escaped_path),
    "getQuery": _part("get_query", _query, map_of(STRING, list_of(STRING))),
}
LIBRARY: Final = Library("url", _OVERLOADS)
