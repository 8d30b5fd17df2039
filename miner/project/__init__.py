"""Static reading of a repository tree: nothing of it is ever executed."""
