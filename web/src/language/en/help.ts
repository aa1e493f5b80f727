/** The help dialog. */
export const help = {
  "help.title": "Help",
  "help.what": "An attention map shows where a model looks: each row is a query, each column a key, each cell the weight the query gives to the key. Every number is computed from what the model used.",
  "help.keys": "Keyboard shortcuts",
  "help.keys.arrows": "Move the selection; with Shift by ten",
  "help.keys.heads": "Previous, next head",
  "help.keys.layers": "Previous, next layer",
  "help.keys.views": "Switch view",
  "help.keys.zoom": "Zoom in, zoom out, show all",
  "help.keys.text": "Go to the text field",
  "help.keys.help": "Show this help",
  "help.keys.escape": "Clear the selection",
  "help.views": "Views",
  "help.words": "Reading the labels",
  "help.proof": "“verified: equals the model's output to 1.7 ulp (2e-7)” means: the model's output was recomputed with these weights and matches to 1.7 units in the last place, a relative error of 2e-7. “unverified” says why that could not be checked. “incomplete” names modules that also computed attention in this run, in a way that is not recorded.",
  "help.hatched": "Hatched cells are masked: by causality, padding or a mask. They are not zero; they do not exist.",
};
