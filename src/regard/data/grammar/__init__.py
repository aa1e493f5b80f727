"""English sentences with their Chinese and the words that mean each other, made by rule."""
