"""Beyond attention: what embeddings, heads and MLPs add to the residual stream, and from there to a logit."""
