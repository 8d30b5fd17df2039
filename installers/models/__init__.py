"""Language models: a request and its reply, what they cost, and what of a project they are shown."""
