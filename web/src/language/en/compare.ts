/** The compare view. */
export const compare = {
  "compare.read": "The same place in two traces. The difference is B − A: orange where B looks more, blue where A does.",
  "compare.none": "Nothing to compare with yet. Choose a second trace in “compare with” above; it is laid beside this one.",
  "compare.loading": "Reading both maps …",
  "compare.failed": "The maps could not be compared: {why}",
  "compare.difference": "B − A",
  "compare.shapes": "There is no difference map: A has {aq} queries × {ak} keys, B has {bq} × {bk}; cells would not stand for the same pair.",
  "compare.layers": "B has no layer {layer} with head {head}, so there is nothing beside A here.",
  "compare.names": "A is {a}, B is {b}.",
  "compare.tokens": "The tokens differ: cells are matched by place, not by word.",
  "compare.largest": "Largest difference",
  "compare.mean": "Mean size of the difference",
  "compare.means": "Each pixel is the difference of two means over {size} × {size} weights.",
  "compare.seen": "over what may be looked at in the whole map",
  "compare.part": "over {size} × {size} means of the whole map; the largest single difference may be larger",
  "compare.equal": "The two maps are equal in every weight.",
};
