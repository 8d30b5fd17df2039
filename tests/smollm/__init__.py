"""A small language model on this machine, behind chat completions, for tests with genuine tokens.

from smollm.server import serving
"""
