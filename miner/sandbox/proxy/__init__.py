"""Programs that run in containers, with the standard library only."""
