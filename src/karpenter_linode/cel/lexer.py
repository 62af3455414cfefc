"""Text to tokens (the lexical grammar of the CEL language definition)."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from karpenter_linode.cel.errors import CompileError

MAX_CODE_POINTS: Final = 100_000


class Token(NamedTuple):
    """A token: its kind, its text and the offset of its first character."""

    kind: str
    text: str
    offset: int


_ESCAPE: Final = r"\\(?:[abfnrtv\\'\"?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"
_STRING: Final = "|".join(
    [
        r'[rR]"""(?s:.)*?"""',
        r"[rR]'''(?s:.)*?'''",
        r'[rR]"[^"\n\r]*"',
        r"[rR]'[^'\n\r]*'",
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
    ],
)
_TOKENS: Final = re.compile(
    rf"""(?P<space>(?:[\t\n\f\r\ ]|//[^\n]*)+)
    |(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
    |(?P<int>0x[0-9a-fA-F]+|[0-9]+)
    |(?P<bytes>[bB](?:{_STRING}))
    |(?P<string>{_STRING})
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<quoted>`[A-Za-z0-9_.\-/\ ]+`)
    |(?P<symbol>==|!=|<=|>=|&&|\|\||[\[\]{{}}().,\-!?:+*/%<>])
    """,
    re.VERBOSE,
)
_KEYWORDS: Final = frozenset({"in", "true", "false", "null"})
END: Final = "end of the expression"


def tokenize(text: str) -> list[Token]:
    """All tokens of an expression, ended by one of kind ``END``.

    Keywords and symbols have themselves as kind; the other kinds are ``int``, ``uint``, ``float``, ``string``,
    ``bytes``, ``name`` and ``quoted`` (a field name in backticks).

    Raises:
        CompileError: a character that begins no token, or a text that is too long.
    """
    if len(text) > MAX_CODE_POINTS:
        raise CompileError(f"expression has {len(text)} code points, at most {MAX_CODE_POINTS} are read", text, 0)
    tokens: list[Token] = []
    offset = 0
    match = _TOKENS.match
    while offset < len(text):
        found = match(text, offset)
        if found is None:
            raise CompileError(_unreadable(text, offset), text, offset)
        kind = found.lastgroup or ""
        if kind != "space":
            piece = found[0]
            if kind == "symbol" or piece in _KEYWORDS:
                kind = piece
            tokens.append(Token(kind, piece, offset))
        offset = found.end()
    tokens.append(Token(END, "", len(text)))
    return tokens


def _unreadable(text: str, offset: int) -> str:
    char = text[offset]
    if char in "\"'":
        return "Syntax error: string without its end, or with an unknown escape (double the backslash, or write r'...')"
    if char == "=":
        return "Syntax error: '=' is no operator, equality is '=='"
    if char in "&|":
        return f"Syntax error: '{char}' is no operator, the logical one is '{char * 2}'"
    return f"Syntax error: unexpected character {char!r}"
