"""The axes of q, k, v and of maps: picked from, brought to four, shared by heads."""
