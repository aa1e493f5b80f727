"""What a server has: models that run, traces that are kept, runs of training; knows nothing of HTTP."""
