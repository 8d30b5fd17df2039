"""Engines map a stage over its items; the coordinator writes what the workers return."""
