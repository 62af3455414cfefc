"""Asyncio loops that join cluster, deciders and ports. Nothing clever lives here.

Belongs here: when to decide (queues, batches, timers), and carrying out what was decided (``effects``). Does not belong
here: any rule about pods, nodes or devices, and any adapter: controllers know ports alone.
"""
