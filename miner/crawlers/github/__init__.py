"""Source `github`: merged pull requests of GitHub, or of a server of its shape."""
