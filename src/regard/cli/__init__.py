"""The same functions by name: each command parses, calls one function and names the next step."""
