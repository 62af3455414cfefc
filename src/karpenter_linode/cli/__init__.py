"""The command line: one module for each command.

Belongs here: reading files, options, printing, exit codes, and building adapters, which nobody else does. Does not
belong here: any rule about pods, nodes or devices (``scheduling``), and any wording of a decision (``explain``).
"""
