"""Failures and what to do about them: logs to signatures, signatures to edits of the recipe. No language model."""
