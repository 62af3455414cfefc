"""The command line: one module for each command; the only place that builds adapters."""
