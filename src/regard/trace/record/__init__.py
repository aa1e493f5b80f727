"""What is recorded of a run: a trace, its runs and layers, their masks in compact form, and what was changed."""
