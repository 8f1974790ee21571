"""Rows from files and databases, for the command line.

``source`` reads what DuckDB gives, block by block. ``header`` finds the columns of a delimited file;
``delimited``, ``piped`` and ``typed`` (Parquet, Arrow, SQL) are the sources. ``coding`` turns texts into
category numbers, ``learning`` makes the table and the schema of training rows, ``applying`` reads later rows
by that schema.
"""
