"""The systems of the paper's comparison, written from their publications."""
