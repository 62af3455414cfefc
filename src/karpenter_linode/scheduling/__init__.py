"""Pure scheduling: a Problem in, a Solution out."""
