"""Simulated people who search: corpora with folders, queries and clicks, learners of a node, and start weights."""
