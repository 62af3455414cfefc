"""The type checker: resolves names and overloads, infers types, and says where an expression cannot be right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from karpenter_linode.cel import ast
from karpenter_linode.cel.errors import CompileError
from karpenter_linode.cel.messages import FIELDS
from karpenter_linode.cel.scope import Scope, candidates
from karpenter_linode.cel.types import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
)
from karpenter_linode.cel.unify import Inference, is_open
from karpenter_linode.cel.values import UInt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from karpenter_linode.cel.declarations import Function, Overload

MAX_HEIGHT: Final = 256
"""Of the tree. Passes over it take up to three Python frames a level, evaluation one or two."""

_LITERALS: Final[Mapping[type, Type]] = {
    type(None): NULL,
    bool: BOOL,
    int: INT,
    UInt: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    dict: map_of(STRING, DYN),
    list: list_of(DYN),
}
_SORTABLE: Final = frozenset({*map(str, (BOOL, BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT))})
_MIXED_ALLOWED: Final = frozenset({"format"})  # functions whose list argument may mix types


class Checker:
    """Checks one expression.

    Args:
        text: the expression, for messages.
        functions: by name.
        scope: the variables and constants that names may stand for.
        checked: whether doubtful types are errors, or left to run time.
        homogeneous: whether list and map literals must be of one type throughout.
    """

    def __init__(
        self,
        text: str,
        functions: Mapping[str, Function],
        scope: Scope,
        *,
        checked: bool,
        homogeneous: bool,
    ) -> None:
        self._text = text
        self._functions = functions
        self._scope = scope
        self._checked = checked
        self._homogeneous = homogeneous
        self._inference = Inference()
        self._seen: list[ast.Node] = []
        self._literals: list[ast.ListLiteral | ast.MapLiteral] = []
        self._mixed = 0
        self._height = 0

    def run(self, root: ast.Node) -> ast.Node:
        """Check a whole tree; the returned one has all types and resolutions in it.

        Raises:
            CompileError: the first thing found to be wrong.
        """
        root = self._check(root)
        for node in self._seen:
            node.type = self._inference.resolve(node.type, final=True)
        if self._homogeneous:
            for literal in self._literals:
                self._check_homogeneous(literal)
        return root

    def _check(self, node: ast.Node) -> ast.Node:
        self._height += 1
        if self._height > MAX_HEIGHT:
            raise self._error(f"expression is nested too deeply: more than {MAX_HEIGHT} levels", node)
        node = _CHECKS[type(node)](self, node)
        self._height -= 1
        self._seen.append(node)
        return node

    def check_literal(self, node: ast.Constant) -> ast.Node:
        """A constant."""
        node.type = _LITERALS[type(node.value)]
        return node

    def check_logic(self, node: ast.Logic) -> ast.Node:
        """``&&`` and ``||``."""
        for index, operand in enumerate(node.operands):  # loops, not comprehensions: those double the stack
            node.operands[index] = self._check(operand)
            self._require(node.operands[index], BOOL)
        node.type = BOOL
        return node

    # names

    def check_ident(self, node: ast.Ident) -> ast.Node:
        """A name."""
        if self._scope.resolve(node):
            return node
        return self._undeclared(node.name, node)

    def _undeclared(self, name: str, node: ast.Node) -> ast.Node:
        message = f"undeclared reference to '{name}' (in container '{self._scope.container}')"
        if self._checked:
            raise self._error(message, node)
        return ast.Constant(failure=message, start=node.start, end=node.end, position=node.position, type=DYN)

    def check_select(self, node: ast.Select) -> ast.Node:
        """A field selection, or the test for one."""
        if not node.optional and not node.test:
            ident = self._scope.resolve_qualified(node)
            if ident is not None:
                return ident
        node.operand = self._check(node.operand)
        operand = self._inference.resolve(node.operand.type)
        optional = operand.name == "optional_type"
        kind = self._field(operand.params[0] if optional else operand, node)
        if node.test:
            node.type = BOOL
        else:
            node.type = optional_of(kind) if optional or node.optional else kind
        return node

    def _field(self, operand: Type, node: ast.Select) -> Type:
        if operand.name == "map":
            return operand.params[1]
        if operand.kind == "object":
            found = operand.field(node.name)
            if found is None:
                self._complain(f"undefined field '{node.name}'", node)
            return found or DYN
        if operand.kind == "param":
            self._inference.assign(DYN, operand)
        elif not is_open(operand):
            self._complain(f"type '{_shown(operand)}' does not support field selection", node)
        return DYN

    # calls

    def check_call(self, node: ast.Call) -> ast.Node:
        """A function, method or operator."""
        function = self._namespaced(node) or self._function(node.function)
        mixed = node.function in _MIXED_ALLOWED
        self._mixed += mixed
        for index, argument in enumerate(node.arguments):
            node.arguments[index] = self._check(argument)
        self._mixed -= mixed
        if function is None:
            return self._undeclared(node.function, node)
        node.function = function.name
        self._resolve(node, function)
        return node

    def _function(self, name: str) -> Function | None:
        for candidate in candidates(name, self._scope.container):
            found = self._functions.get(candidate)
            if found is not None:
                return found
        return None

    def _namespaced(self, node: ast.Call) -> Function | None:
        """``a.b.f(x)`` with a function of the name ``a.b.f``: no method, but a global call."""
        if not node.member:
            return None
        prefix = ast.qualified_name(node.arguments[0])
        if not prefix or self._scope.is_local(prefix):
            return None
        function = self._function(f"{prefix}.{node.function}")
        if function is not None:
            node.member = False
            del node.arguments[0]
        return function

    def _resolve(self, node: ast.Call, function: Function) -> None:
        given = [self._inference.resolve(argument.type) for argument in node.arguments]
        possible: list[Overload] = []
        result: Type | None = None
        for overload in function.overloads:
            if overload.member != node.member or len(overload.params) != len(given):
                continue
            params, declared = overload.params, overload.result
            if overload.id in function.generic:
                *fresh, declared = self._inference.instantiate((*params, declared))
                params = tuple(fresh)
            if not self._inference.assign_all(given, params):
                continue
            possible.append(overload)
            outcome = self._inference.resolve(declared)
            result = outcome if result is None or result == outcome else DYN
        if not possible:
            given = [self._inference.resolve(each, final=True) for each in given]
            self._complain(
                f"found no matching overload for '{node.function}' applied to '{_signature(given, node)}'", node
            )
            possible = list(function.overloads)
        node.overloads = tuple(possible)
        node.type = result or DYN

    # literals

    def check_list(self, node: ast.ListLiteral) -> ast.Node:
        """``[...]``."""
        joined: Type | None = None
        for index, element in enumerate(node.elements):
            node.elements[index] = self._check(element)
            kind = self._element_type(node.elements[index], optional=index in node.optional)
            joined = kind if joined is None else self._inference.join(joined, kind)
        node.type = list_of(joined or self._inference.fresh())
        if not self._mixed:
            self._literals.append(node)
        return node

    def check_map(self, node: ast.MapLiteral) -> ast.Node:
        """``{...}``."""
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            entry.key = self._check(entry.key)
            entry.value = self._check(entry.value)
            key = entry.key.type if key is None else self._inference.join(key, entry.key.type)
            kind = self._element_type(entry.value, optional=entry.optional)
            value = kind if value is None else self._inference.join(value, kind)
        node.type = map_of(key or self._inference.fresh(), value or self._inference.fresh())
        if not self._mixed:
            self._literals.append(node)
        return node

    def _element_type(self, node: ast.Node, *, optional: bool) -> Type:
        kind = self._inference.resolve(node.type)
        if not optional or is_open(kind):
            return kind
        if kind.name != "optional_type":
            self._complain(f"expected type 'optional_type({_shown(kind)})' but found '{_shown(kind)}'", node)
            return DYN
        return kind.params[0]

    def _check_homogeneous(self, node: ast.ListLiteral | ast.MapLiteral) -> None:
        if isinstance(node, ast.ListLiteral):
            columns = [[(element, index in node.optional) for index, element in enumerate(node.elements)]]
        else:
            columns = [
                [(entry.key, False) for entry in node.entries],
                [(entry.value, entry.optional) for entry in node.entries],
            ]
        for column in columns:
            kinds = [
                element.type.params[0] if optional and element.type.params else element.type
                for element, optional in column
            ]
            for (element, _), kind in zip(column, kinds, strict=True):
                if kind != kinds[0]:
                    raise self._error(f"expected type '{_shown(kinds[0])}' but found '{_shown(kind)}'", element)

    def check_message(self, node: ast.MessageLiteral) -> ast.Node:
        """A message literal."""
        if node.name in FIELDS:
            return self._well_known(node, FIELDS[node.name])
        declared = self._scope.object_type(node.name)
        if declared is None:
            return self._undeclared(node.name, node)
        for entry in node.entries:
            self._check(entry.value)
            name = entry.key.value if isinstance(entry.key, ast.Constant) else ""
            if declared.field(name) is None:
                self._complain(f"undefined field '{name}'", entry.key)
        failure = f"unknown type '{node.name}': objects of this kind come from outside and cannot be written"
        return ast.Constant(failure=failure, start=node.start, end=node.end, position=node.position, type=declared)

    def _well_known(self, node: ast.MessageLiteral, fields: Mapping[str, object]) -> ast.Node:
        """A message with a value of its own: a call with the fields as arguments, in their order."""
        start, end, position = node.start, node.end, node.position
        given: dict[str, ast.Node] = {
            name: ast.Constant(value=default, start=start, end=end, position=position)
            for name, default in fields.items()
        }
        for entry in node.entries:
            name = entry.key.value if isinstance(entry.key, ast.Constant) else ""
            if name not in fields or entry.optional:
                self._complain(f"undefined field '{name}'", entry.key)
            given[name] = entry.value
        call = ast.Call(
            function="@" + node.name, arguments=list(given.values()), start=start, end=end, position=position
        )
        return self.check_call(call)

    # macros

    def check_loop(self, node: ast.Loop) -> ast.Node:
        """A comprehension macro."""
        node.range = self._check(node.range)
        key, element = self._range_types(node.range)
        single = key if node.range.type.name == "map" else element
        kinds = (key, element) if len(node.variables) > 1 else (single,)
        with self._scope.local(node.variables, kinds) as slots:
            node.slots = slots
            if node.condition is not None:
                node.condition = self._check(node.condition)
                self._require(node.condition, BOOL)
            node.body = self._check(node.body)
        node.type = self._loop_type(node, key)
        return node

    def _range_types(self, node: ast.Node) -> tuple[Type, Type]:
        kind = self._inference.resolve(node.type)
        node.type = kind
        if kind.name == "list":
            return INT, kind.params[0]
        if kind.name == "map":
            return kind.params[0], kind.params[1]
        if kind.kind == "param":
            self._inference.assign(DYN, kind)
        elif kind == ANY or not is_open(kind):
            why = "cannot be range of a comprehension (must be list, map, or dynamic)"
            self._complain(f"expression of type '{_shown(kind)}' {why}", node)
        return DYN, DYN

    def _loop_type(self, node: ast.Loop, key: Type) -> Type:
        body = node.body.type
        match node.kind:
            case "list":
                return list_of(body)
            case "map":
                return map_of(key, body)
            case "map_entries":
                kind = self._inference.resolve(body)
                if kind.name != "map" and not is_open(kind):
                    signature = f"(map(dyn, dyn), {_shown(kind)})"
                    self._complain(
                        f"found no matching overload for 'cel.@mapInsert' applied to '{signature}'", node.body
                    )
                return kind
            case _:
                self._require(node.body, BOOL)
                return BOOL

    def check_bind(self, node: ast.Bind) -> ast.Node:
        """``cel.bind``."""
        node.value = self._check(node.value)
        with self._scope.local((node.name,), (node.value.type,), bound=True) as (slot,):
            node.slot = slot
            node.body = self._check(node.body)
        node.type = node.body.type
        return node

    def check_optional_map(self, node: ast.OptionalMap) -> ast.Node:
        """``optMap`` and ``optFlatMap``."""
        node.target = self._check(node.target)
        element = self._inference.fresh()
        name = "optFlatMap" if node.flat else "optMap"
        if not self._inference.assign(node.target.type, optional_of(element)):
            shown = _shown(self._inference.resolve(node.target.type, final=True))
            self._complain(f"found no matching overload for '{name}' applied to '{shown}'", node)
        with self._scope.local((node.name,), (self._inference.resolve(element),), bound=True) as (slot,):
            node.slot = slot
            node.body = self._check(node.body)
        node.type = node.body.type if node.flat else optional_of(node.body.type)
        if node.flat and not self._inference.assign(node.body.type, optional_of(self._inference.fresh())):
            self._complain(f"optFlatMap needs an optional, found '{_shown(node.body.type)}'", node.body)
        return node

    def check_sort(self, node: ast.SortBy) -> ast.Node:
        """``sortBy``."""
        node.target = self._check(node.target)
        if not self._inference.assign(node.target.type, list_of(self._inference.fresh())):
            self._complain(f"found no matching overload for 'sortBy' applied to '{_shown(node.target.type)}'", node)
        with self._scope.local((ast.SORT_INPUT,), (node.target.type,), bound=True) as (slot,):
            node.slot = slot
            self._check(node.keys)
        node.type = node.target.type
        key = self._inference.resolve(node.keys.body.type)
        if not is_open(key) and key.kind != "param" and key.name not in _SORTABLE:
            self._complain(f"found no matching overload for 'sortBy' with keys of type '{_shown(key)}'", node)
        return node

    # complaints

    def _require(self, node: ast.Node, kind: Type) -> None:
        if not self._inference.assign(node.type, kind):
            found = self._inference.resolve(node.type, final=True)
            self._complain(f"expected type '{kind}' but found '{_shown(found)}'", node)

    def _complain(self, message: str, node: ast.Node) -> None:
        if self._checked:
            raise self._error(message, node)

    def _error(self, message: str, node: ast.Node) -> CompileError:
        return CompileError(message, self._text, node.position)


def _signature(given: list[Type], node: ast.Call) -> str:
    shown = [_shown(each) for each in given]
    return f"{shown[0]}.({', '.join(shown[1:])})" if node.member else f"({', '.join(shown)})"


def _shown(kind: Type) -> str:
    return "null" if kind is NULL else "error" if kind is ERROR else str(kind)


_CHECKS: Final[Mapping[type[ast.Node], Callable[[Checker, Any], ast.Node]]] = {
    ast.Constant: Checker.check_literal,
    ast.Ident: Checker.check_ident,
    ast.Select: Checker.check_select,
    ast.Call: Checker.check_call,
    ast.Logic: Checker.check_logic,
    ast.ListLiteral: Checker.check_list,
    ast.MapLiteral: Checker.check_map,
    ast.MessageLiteral: Checker.check_message,
    ast.Loop: Checker.check_loop,
    ast.Bind: Checker.check_bind,
    ast.OptionalMap: Checker.check_optional_map,
    ast.SortBy: Checker.check_sort,
}
