"""What a language model is told about a project, and what is made of the recipe that it answers with."""
