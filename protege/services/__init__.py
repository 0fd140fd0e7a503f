"""The use cases: plain functions that every door calls, so that all doors behave alike."""
