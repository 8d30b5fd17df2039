"""Stage 2: describe, lock, layer, image; the ladder of strategies."""
