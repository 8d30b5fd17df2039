"""What keeps a repository's text, and a model's recipe, from deciding what the tests say."""
