"""Language models behind an endpoint: a request and its reply, each a fact, within what they may cost."""
