"""Rows from files and databases, for the command line.

``header`` finds the columns of a delimited file, ``cells`` splits it, ``delimited`` and ``typed`` are the two
kinds of source (text, and Parquet, Arrow or SQL), ``piped`` is text that comes from a
pipe, ``coding`` turns texts into category numbers, ``learning`` makes the table and the schema of training
rows, ``applying`` reads later rows by that schema.
"""
