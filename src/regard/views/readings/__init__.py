"""One text, read by two models: what each may look at, what it looks at, and how well it guesses the words."""
