"""Stage 4: from candidates to a release that can be checked and made again."""
