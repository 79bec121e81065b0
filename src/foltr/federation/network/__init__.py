"""A federation of machines: messages, the coordinator's desk, its transport over HTTPS, and the second operator."""
