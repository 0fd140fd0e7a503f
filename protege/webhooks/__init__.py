"""Doors for mail that is posted to us: a mail as it is, or in the form of a provider."""
