"""Another attention in the place of a model's own, for a while, and what that changes."""
