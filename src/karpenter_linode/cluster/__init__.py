"""The mirrored cluster: events in, immutable snapshots out."""
