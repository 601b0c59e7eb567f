"""The `sonic-eks` command."""
