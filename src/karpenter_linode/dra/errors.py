"""Errors of an allocation: what makes Kubernetes give up on a claim instead of trying another device."""

from __future__ import annotations


class AllocationError(Exception):
    """An allocation cannot even be tried to its end. Kubernetes gives the pod up on this node, too.

    Args:
        code: stable kebab-case word (``dra-class-missing``).
        message: names claim, request, and what was found.
        facts: values behind the message.
    """

    def __init__(self, code: str, message: str, facts: tuple[tuple[str, str], ...] = ()) -> None:
        self.code = code
        self.message = message
        self.facts = facts
        super().__init__(message)


class StepLimitError(AllocationError):
    """The search used up its steps without an answer."""

    def __init__(self, steps: int) -> None:
        super().__init__(
            "dra-step-limit",
            f"the device search gave up after {steps} tried devices without an answer",
            (("steps", str(steps)),),
        )
