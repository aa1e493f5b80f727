"""What travels between a page and the server: messages, how much is taken of each, and how a request is refused."""
