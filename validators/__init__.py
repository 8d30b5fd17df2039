"""Stage 3: outcomes to verdicts, rules to findings, findings to decisions."""
