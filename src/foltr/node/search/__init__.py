"""A search: from the typed text to the rows that are displayed and opened."""
