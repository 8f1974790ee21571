"""GREEDYTREE of the paper, and growers that know what is already paid."""
