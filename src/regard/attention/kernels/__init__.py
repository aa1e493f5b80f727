"""q, k, v → mix, by whichever way serves the call: PyTorch's kernels, or stage by stage."""
