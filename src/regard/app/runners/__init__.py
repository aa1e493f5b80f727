"""Models that were opened: each can run on a text, and run again under edits."""
