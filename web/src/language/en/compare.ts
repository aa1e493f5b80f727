/** The compare view. */
export const compare = {
  "compare.read": "The same position in two traces. The difference is B − A: orange where B attends more, blue where A does.",
  "compare.none": "Nothing to compare with yet. Choose a second trace under “Compare with” above; it is shown beside this one.",
  "compare.loading": "Reading both maps…",
  "compare.failed": "The maps could not be compared: {why}",
  "compare.difference": "B − A",
  "compare.shapes": "No difference map: A has {aq} queries × {ak} keys, B has {bq} × {bk}, so cells do not match.",
  "compare.layers": "B has no layer {layer} with head {head}, so there is nothing to show beside A.",
  "compare.names": "A is {a}, B is {b}.",
  "compare.tokens": "The tokens differ: cells are matched by position, not by word.",
  "compare.largest": "Largest difference",
  "compare.mean": "Mean absolute difference",
  "compare.means": "Each pixel is the difference of two means over {size} × {size} weights.",
  "compare.seen": "over all unmasked cells",
  "compare.part": "over means of {size} × {size} weights; single differences may be larger",
  "compare.equal": "The two maps have equal weights everywhere.",
};
