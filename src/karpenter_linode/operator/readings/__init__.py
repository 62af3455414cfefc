"""What a scrape reads from the mirrored cluster: pure functions from a snapshot to readings.

A series exists exactly as long as its object does. What happens at a moment (counters, durations) is not read but
counted when it happens, by whoever sees it.
"""
