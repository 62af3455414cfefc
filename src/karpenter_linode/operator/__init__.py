"""Wiring of controllers and adapters."""
