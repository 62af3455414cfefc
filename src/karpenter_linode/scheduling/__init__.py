"""Pure scheduling: a ``Problem`` in, a ``Solution`` out.

Belongs here: everything that decides where pods go, down to the NodeClaims to create and the reasons of every refusal.
Does not belong here: clocks, events, logs, API calls; device search (``dra``); when nodes go (``disruption``).
"""

from karpenter_linode.scheduling.plan_tables import PlanTables
from karpenter_linode.scheduling.problem import Problem, SchedulingOptions, Solution, StateNode
from karpenter_linode.scheduling.solver import Simulation, solve

__all__ = ["PlanTables", "Problem", "SchedulingOptions", "Simulation", "Solution", "StateNode", "solve"]
