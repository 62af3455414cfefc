"""Renders decisions for people and machines: Reason trees, Solutions and journals as text lines and as plain data.

Belongs here: wording, order and layout. Does not belong here: any rule that decides, and any terminal (lines carry a
kind; whoever prints them chooses the colours).
"""

from karpenter_linode.explain.reasons import reason_data, reason_lines
from karpenter_linode.explain.solution import solution_data, solution_lines
from karpenter_linode.explain.text import Line, money, table

__all__ = ["Line", "money", "reason_data", "reason_lines", "solution_data", "solution_lines", "table"]
