"""Pure deciders that remove nodes."""
