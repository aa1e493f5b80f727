"""The same doors, to change instead of look."""
