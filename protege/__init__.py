"""Protege: AI colleagues for a Django project, reached by e-mail."""

__version__ = "0.1.0"
