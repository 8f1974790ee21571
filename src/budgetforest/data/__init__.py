"""From a dataframe and a price list to checked rows, prices and one-byte codes."""
