"""What an expression may name: variables and libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from karpenter_linode.cel.types import BOOL, Type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from karpenter_linode.cel.program import Program


class Environment:
    """The variables and libraries that expressions are compiled against."""

    def __init__(self, variables: Mapping[str, Type]) -> None:
        self._variables = dict(variables)

    def compile(self, text: str, *, result: Type | None = BOOL) -> Program:
        """Parse, check and compile an expression.

        Raises:
            CompileError: syntax, types, or the result type.
        """
        raise NotImplementedError
