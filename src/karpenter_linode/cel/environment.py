"""What an expression may name: variables and libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from karpenter_linode.cel.checker import Checker
from karpenter_linode.cel.declarations import Function, Library, Overload
from karpenter_linode.cel.emit import Emitter
from karpenter_linode.cel.errors import CompileError
from karpenter_linode.cel.fold import fold
from karpenter_linode.cel.libraries import KUBERNETES
from karpenter_linode.cel.parser import parse
from karpenter_linode.cel.program import Program
from karpenter_linode.cel.scope import Scope
from karpenter_linode.cel.types import BOOL, Type, abstract_type, type_of
from karpenter_linode.cel.unify import is_open
from karpenter_linode.cel.values import TypeValue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from karpenter_linode.cel import ast
    from karpenter_linode.cel.estimate import SizeHint
    from karpenter_linode.cel.macros import Macro

_TYPE_NAMES = (
    *("bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type", "optional_type"),
    *("google.protobuf.Timestamp", "google.protobuf.Duration"),
)


class Environment:
    """The variables and libraries that expressions are compiled against. Make it once, compile many texts with it.

    Args:
        variables: names with their types; a name may have dots in it.
        libraries: what functions and macros there are; those of Kubernetes' device selectors by default.
        sizes: for the cost estimate: how large what lies at a path can be (see ``estimate.SizeHint``).
        container: the namespace in which short names are looked up first.
        checked: ``False`` leaves all questions of type to run time.
        quoted_fields: whether field names may stand in backticks; Kubernetes 1.34 does not take them in selectors.
        homogeneous: whether the elements of a list literal, and the keys and values of a map literal, must each be of
            one type (spec/cel-for-dra.md section 4).
    """

    def __init__(
        self,
        variables: Mapping[str, Type],
        *,
        libraries: tuple[Library, ...] = KUBERNETES,
        sizes: SizeHint | None = None,
        container: str = "",
        checked: bool = True,
        homogeneous: bool = True,
        quoted_fields: bool = False,
    ) -> None:
        self._variables = dict(variables)
        self._sizes = sizes
        self._container = container
        self._checked = checked
        self._homogeneous = homogeneous
        self._quoted_fields = quoted_fields
        overloads: dict[str, list[Overload]] = {}
        self._macros: dict[tuple[str, int, bool], Macro] = {}
        self._constants: dict[str, tuple[Type, Any]] = {}
        for name in _TYPE_NAMES:
            self._constants[name] = type_of(abstract_type(name)), TypeValue(name)
        for library in libraries:
            self._macros.update(library.macros)
            for name, added in library.overloads.items():
                overloads.setdefault(name, []).extend(added)
            for kind in library.types:
                self._constants[kind.name] = type_of(kind), TypeValue(kind.name)
        self._functions = {name: Function(name, tuple(added)) for name, added in overloads.items()}

    def compile(self, text: str, *, result: Type | None = BOOL) -> Program:
        """Parse, check and compile an expression.

        Args:
            text: the expression.
            result: the type it must have; an expression of type dyn or any is then looked at when it is evaluated.
                ``None`` takes whatever comes.

        Raises:
            CompileError: syntax, names, types, literals, or the result type.
        """
        try:
            tree, scope = self._check(text)
            if result is not None and tree.type != result and not is_open(tree.type):
                raise CompileError(f"must evaluate to {result} or the unknown type, not {tree.type}", text, tree.start)
            emitter = Emitter(self._functions, checked=self._checked)
            return Program(text, fold(tree, text), scope, emitter, self._estimate, must_be_bool=result == BOOL)
        except RecursionError:
            raise CompileError("expression is nested too deeply", text, 0) from None

    def _check(self, text: str) -> tuple[ast.Node, Scope]:
        scope = Scope(self._variables, self._constants, self._container)
        tree = parse(text, self._macros, quoted_fields=self._quoted_fields)
        checker = Checker(text, self._functions, scope, checked=self._checked, homogeneous=self._homogeneous)
        return checker.run(tree), scope

    def _estimate(self, text: str) -> tuple[int, int]:
        from karpenter_linode.cel.estimate import estimate  # noqa: PLC0415 - few need it

        # read again: folding has made the program's own tree cheaper than what Kubernetes estimates
        return estimate(self._check(text)[0], self._sizes)
