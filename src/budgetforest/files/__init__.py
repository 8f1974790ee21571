"""Rows from files and databases, for the command line.

``source`` reads what DuckDB gives, block by block. ``encoding`` makes UTF-8 of other texts, ``header`` finds
the columns of a delimited file; ``delimited``, ``piped`` and ``typed`` (Parquet, Arrow, SQL) are the
sources. ``coding`` turns texts into category numbers, ``learning`` makes the table and the schema of training
rows, ``profile`` says what is in them, ``applying`` reads later rows by that schema. ``thousands`` finds
numbers that both refuse.
"""
