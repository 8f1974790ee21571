"""Decide rows live: ask for one feature at a time, pay each once, stop when settled."""
