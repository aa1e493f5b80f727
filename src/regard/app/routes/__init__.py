"""The addresses of the server. Each function is marked with who may ask it (access.py)."""
