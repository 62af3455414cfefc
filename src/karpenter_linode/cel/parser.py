"""Tokens to syntax tree: operator precedence with an operand stack of its own, so that long chains need no recursion.

Only brackets, arguments and the branches of ``?:`` recurse; ``MAX_DEPTH`` of them may be open at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.cel.ast import (
    CONDITIONAL,
    INDEX,
    OPTIONAL_INDEX,
    Call,
    Constant,
    Entry,
    Ident,
    ListLiteral,
    Logic,
    MapLiteral,
    MessageLiteral,
    Node,
    Select,
    qualified_name,
)
from karpenter_linode.cel.errors import CompileError
from karpenter_linode.cel.lexer import END, Token, tokenize
from karpenter_linode.cel.literals import LiteralError, read_bytes, read_double, read_int, read_string, read_uint
from karpenter_linode.cel.macros import MacroCall

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from karpenter_linode.cel.macros import MacroTable


MAX_DEPTH: Final = 250

_POWER: Final = {
    "||": 1,
    "&&": 2,
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!=", "in"), 3),
    **dict.fromkeys(("+", "-"), 4),
    **dict.fromkeys(("*", "/", "%"), 5),
}
_RESERVED: Final = frozenset(  # words of other languages that CEL keeps for itself
    (
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package"),
        *("namespace", "return", "var", "void", "while"),
    ),
)
_CONSTANTS: Final[Mapping[str, Any]] = {"true": True, "false": False, "null": None}
_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "int": read_int,
    "uint": read_uint,
    "float": read_double,
    "string": read_string,
    "bytes": read_bytes,
}


def parse(text: str, macros: MacroTable, *, quoted_fields: bool = False) -> Node:
    """The tree of an expression, macros expanded.

    Args:
        text: the expression.
        macros: by (name, number of arguments, written as a method).
        quoted_fields: whether field names may stand in backticks.

    Raises:
        CompileError: the text does not follow the grammar.
    """
    parser = _Parser(text, macros, quoted_fields=quoted_fields)
    node = parser.expression()
    parser.expect(END)
    return node


class _Parser:
    def __init__(self, text: str, macros: MacroTable, *, quoted_fields: bool) -> None:
        self._text = text
        self._quoted_fields = quoted_fields
        self._macros = macros
        self._tokens = tokenize(text)
        self._next = 0
        self._depth = 0

    # Each level of nesting costs three Python frames (expression, operand, and what reads the brackets), which keeps
    # MAX_DEPTH levels well inside the interpreter's recursion limit. That is why these two methods do so much each.

    def expression(self) -> Node:
        """``or [? or : expression]``."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.error(f"expression recursion limit exceeded: {MAX_DEPTH}")
        stacks: list[list[Node]] = [[]]
        pending: list[list[Token]] = [[]]
        marks: list[Token] = []
        while True:
            stacks[-1].append(self._operand())
            token = self._tokens[self._next]
            power = _POWER.get(token.kind, 0)
            while pending[-1] and _POWER[pending[-1][-1].kind] >= power:
                _reduce(stacks[-1], pending[-1].pop())
            if power:
                pending[-1].append(token)
            elif token.kind == "?" and len(marks) % 2 == 0:
                # the middle is no full expression: an unbracketed condition inside it is a syntax error in CEL
                self._deepen(marks)
                marks.append(token)
                stacks.append([])
                pending.append([])
            elif token.kind == ":" and len(marks) % 2 == 1:
                marks.append(token)
                stacks.append([])
                pending.append([])
            elif len(marks) % 2 == 1:
                raise self.error(f"Syntax error: expected ':', found {_shown(token)}")
            else:
                break
            self._next += 1
        self._depth -= 1 + len(marks) // 2
        return _conditional([stack[0] for stack in stacks], marks)

    def _deepen(self, marks: list[Token]) -> None:
        self._depth += bool(marks)
        if self._depth > MAX_DEPTH:
            raise self.error(f"expression recursion limit exceeded: {MAX_DEPTH}")

    def _operand(self) -> Node:
        first, count = self._signs()
        token = self._tokens[self._next]
        start = _STARTS.get(token.kind)
        if start is None:
            raise self.error(f"Syntax error: expected an operand, found {_shown(token)}")
        self._next += 1
        if count == 1 and first.kind == "-" and token.kind in ("int", "float"):
            node: Node = self._negative_number(first, token)
            count = 0
        elif token.kind == "name" and self._tokens[self._next].kind == "(" and token.text not in _RESERVED:
            node = self._call(token, None, "", token.offset)
        else:
            node = start(self, token)
        while True:
            following = self._tokens[self._next].kind
            if following == "." and self._method_follows():
                node = self._call(self._tokens[self._next - 1], node, "", node.start)
            elif following == ".":
                node = self._member(node)
            elif following == "[":
                node = self._index(node)
            elif following == "{" and (name := qualified_name(node)):
                node = self._message(node, name)
            else:
                return _signed(node, first, count)

    def _signs(self) -> tuple[Token, int]:
        """Step over ``!!`` or ``--``: the first of them, and how many."""
        first = token = self._tokens[self._next]
        begin = self._next
        while token.kind == first.kind and token.kind in ("!", "-"):
            self._next += 1
            token = self._tokens[self._next]
        if self._next > begin and token.kind in ("!", "-"):
            raise self.error(f"Syntax error: '{token.kind}' cannot follow '{first.kind}' without brackets")
        return first, self._next - begin

    def read_constant(self, token: Token) -> Node:
        """``true``, ``false``, ``null``."""
        value = _CONSTANTS[token.kind]
        return Constant(value=value, start=token.offset, end=token.offset + len(token.text), position=token.offset)

    def read_bracketed(self, token: Token) -> Node:
        """``(...)``."""
        node = self.expression()
        close = self.expect(")")
        node.start, node.end = token.offset, close.offset + 1
        return node

    def read_number_or_text(self, token: Token) -> Node:
        """A literal with a token of its own."""
        return self._literal(token, lambda: _READERS[token.kind](token.text))

    def read_name(self, token: Token) -> Node:
        """A name, or a call of one with a leading dot."""
        name = self.expect("name") if token.kind == "." else token
        dot = "." if token.kind == "." else ""
        end = name.offset + len(name.text)
        if name.text in _RESERVED:
            raise CompileError(f"reserved identifier: {name.text}", self._text, name.offset)
        if self._tokens[self._next].kind == "(":
            return self._call(name, None, dot, token.offset)
        return Ident(name=dot + name.text, start=token.offset, end=end, position=token.offset)

    def _method_follows(self) -> bool:
        """Step over ``.name`` if a bracket follows it."""
        if self._tokens[self._next + 1].kind != "name" or self._tokens[self._next + 2].kind != "(":
            return False
        self._next += 2
        return True

    def _member(self, node: Node) -> Node:
        dot = self.advance()
        optional = self._accept("?")
        name = self.advance()
        if name.kind not in ("name", "quoted"):
            self._next -= 1
            raise self.error(f"Syntax error: expected a field or method name after '.', found {_shown(name)}")
        if name.kind == "quoted":
            if not self._quoted_fields:
                raise CompileError("unsupported syntax: '`'", self._text, name.offset)
            name = name._replace(text=name.text[1:-1])
        end = self._tokens[self._next - 1].offset + len(self._tokens[self._next - 1].text)
        return Select(operand=node, name=name.text, optional=optional, start=node.start, end=end, position=dot.offset)

    def _index(self, node: Node) -> Node:
        bracket = self.advance()
        function = OPTIONAL_INDEX if self._accept("?") else INDEX
        key = self.expression()
        end = self.expect("]").offset + 1
        return Call(function=function, arguments=[node, key], start=node.start, end=end, position=bracket.offset)

    def _call(self, name: Token, target: Node | None, dot: str, start: int) -> Node:
        bracket = self.advance()
        arguments: list[Node] = []
        if not self._accept(")"):
            arguments.append(self.expression())
            while self._accept(","):
                arguments.append(self.expression())
            self.expect(")")
        last = self._tokens[self._next - 1]
        end = last.offset + 1
        macro = self._macros.get((name.text, len(arguments), target is not None)) if not dot else None
        if macro is not None:
            node = macro(MacroCall(self._text, target, arguments, start, end, bracket.offset))
            if node is not None:
                return node
        return Call(
            function=dot + name.text,
            arguments=arguments if target is None else [target, *arguments],
            member=target is not None,
            start=start,
            end=end,
            position=bracket.offset,
        )

    def read_list(self, bracket: Token) -> Node:
        """``[...]``."""
        elements: list[Node] = []
        optional: list[int] = []
        while self._tokens[self._next].kind not in ("]", ","):
            if self._accept("?"):
                optional.append(len(elements))
            elements.append(self.expression())
            if self._tokens[self._next].kind != ",":
                break
            self._next += 1
        else:
            if not elements:
                self._accept(",")
        end = self.expect("]").offset + 1
        return ListLiteral(
            elements=elements,
            optional=frozenset(optional),
            start=bracket.offset,
            end=end,
            position=bracket.offset,
        )

    def read_map(self, bracket: Token) -> Node:
        """``{...}``."""
        entries: list[Entry] = []
        while self._tokens[self._next].kind not in ("}", ","):
            optional = self._accept("?")
            key = self.expression()
            self.expect(":")
            entries.append(Entry(key, self.expression(), optional))
            if self._tokens[self._next].kind != ",":
                break
            self._next += 1
        else:
            if not entries:
                self._accept(",")
        end = self.expect("}").offset + 1
        return MapLiteral(entries=entries, start=bracket.offset, end=end, position=bracket.offset)

    def _message(self, node: Node, name: str) -> Node:
        bracket = self.advance()
        entries: list[Entry] = []
        while self._tokens[self._next].kind != "}":
            optional = self._accept("?")
            field = self.expect("name")
            self.expect(":")
            key = Constant(
                value=field.text, start=field.offset, end=field.offset + len(field.text), position=field.offset
            )
            entries.append(Entry(key, self.expression(), optional))
            if not self._accept(","):
                break
        end = self.expect("}").offset + 1
        return MessageLiteral(name=name, entries=entries, start=node.start, end=end, position=bracket.offset)

    def _literal(self, token: Token, read: Callable[[], object]) -> Constant:
        try:
            value = read()
        except LiteralError as error:
            raise CompileError(str(error), self._text, token.offset) from error
        return Constant(value=value, start=token.offset, end=token.offset + len(token.text), position=token.offset)

    def _negative_number(self, sign: Token, number: Token) -> Constant:
        if number.kind == "int":
            node = self._literal(number, lambda: read_int(number.text, negative=True))
        else:
            node = self._literal(number, lambda: -read_double(number.text))
        node.start = node.position = sign.offset
        return node

    def advance(self) -> Token:
        """Take the next token, whatever it is."""
        token = self._tokens[self._next]
        if token.kind != END:
            self._next += 1
        return token

    def expect(self, kind: str) -> Token:
        """Take the next token, which must be of a kind."""
        token = self._tokens[self._next]
        if token.kind != kind:
            wanted = kind if kind in (END, "name") else f"'{kind}'"
            raise self.error(f"Syntax error: expected {wanted}, found {_shown(token)}")
        return self.advance()

    def _accept(self, kind: str) -> bool:
        found = self._tokens[self._next].kind == kind
        self._next += found
        return found

    def error(self, message: str) -> CompileError:
        """An error about the next token."""
        return CompileError(message, self._text, self._tokens[self._next].offset)


_STARTS: Final[Mapping[str, Callable[[_Parser, Token], Node]]] = {
    **dict.fromkeys(_READERS, _Parser.read_number_or_text),
    **dict.fromkeys(_CONSTANTS, _Parser.read_constant),
    **dict.fromkeys(("name", "."), _Parser.read_name),
    "(": _Parser.read_bracketed,
    "[": _Parser.read_list,
    "{": _Parser.read_map,
}


def _signed(node: Node, sign: Token, count: int) -> Node:
    """A node behind as many signs of one kind. Pairs cancel out, even before types are looked at."""
    if not count:
        return node
    node.start = sign.offset
    if count % 2 == 0:
        return node
    name = "!_" if sign.kind == "!" else "-_"
    return Call(function=name, arguments=[node], start=sign.offset, end=node.end, position=sign.offset)


def _conditional(parts: list[Node], marks: list[Token]) -> Node:
    """``a ? b : c ? d : e`` from its five parts and four marks; it binds to the right."""
    node = parts[-1]
    for index in range(len(parts) - 3, -1, -2):
        condition, middle = parts[index], parts[index + 1]
        node = Call(
            function=CONDITIONAL,
            arguments=[condition, middle, node],
            start=condition.start,
            end=node.end,
            position=marks[index].offset,
        )
    return node


def _reduce(operands: list[Node], operator: Token) -> None:
    right, left = operands.pop(), operands.pop()
    start, end = left.start, right.end
    if operator.kind not in ("&&", "||"):
        name = "@in" if operator.kind == "in" else f"_{operator.kind}_"
        operands.append(
            Call(function=name, arguments=[left, right], start=start, end=end, position=operator.offset),
        )
        return
    conjunction = operator.kind == "&&"
    # a bracketed chain is kept apart: its text begins before its first operand
    if isinstance(left, Logic) and left.conjunction == conjunction and left.start == left.operands[0].start:
        left.operands.append(right)
        left.end = end
        operands.append(left)
    else:
        operands.append(
            Logic(conjunction=conjunction, operands=[left, right], start=start, end=end, position=operator.offset),
        )


def _shown(token: Token) -> str:
    return f"'{token.text}'" if token.text else token.kind
