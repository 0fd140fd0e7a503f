"""The door for the model: one built-in tool a file; each calls a use case."""
