"""An agent: a language model that looks around in a throw-away container, and comes back with a recipe or nothing."""
