"""Asyncio loops that join cluster, deciders and ports. Nothing clever lives here."""
