"""A language model in a throw-away container: it looks around, and what counts is the recipe that it writes."""
