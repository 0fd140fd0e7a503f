"""Who speaks: personas, their addresses, their standing duties."""
