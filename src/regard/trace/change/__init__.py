"""Change: listeners at the same doors that answer a call with another mix; edits, swaps, and what they come to."""
