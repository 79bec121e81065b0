"""A node's memory: the log of displayed lists and choices, and the weights that are fitted to it."""
