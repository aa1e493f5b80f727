"""Measures of a trace: entropy, distance and shares of heads, rollout, gradients, and tables of them."""
