"""Topology spread, pod affinity and pod anti-affinity (spec/karpenter-scheduling.md 2.12).

Belongs here: which domains exist, how many pods each group counts in them, and which of them a pod may use. Does not
belong here: nodes and claims themselves; they appear as masks and requirements only.
"""
