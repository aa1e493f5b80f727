"""A text whose words are shaded by what they counted for its class: in the terminal, as a figure, as a page."""
