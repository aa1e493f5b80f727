/** The formula of each step, in the letters of the road: i is the query, j the key, c a channel. */
import { functionName, cases, formula, fraction, around, root, row, sub, under, words } from "./mathml";
import type { StepName } from "./work";

export interface FormulaOf {
  readonly scale: "root" | "own"; // 1/√d, or a number of the model's own
  readonly sink: boolean;
  readonly blocked: string; // "j may be looked at", in the reader's words
  readonly otherwise: string;
}

const s = (): Element => sub("s", row("i", "j"));
const w = (): Element => sub("w", row("i", "j"));

/** The typeset formula of a step; null where there is none to show. */
export function formulaOf(step: StepName, of: FormulaOf): Element | null {
  const power = (): Element => row(functionName("exp"), "(", s(), "−", sub("m", "i"), ")");
  switch (step) {
    case "q": return formula(sub("q", "i"), "=", sub("Q", "i"));
    case "k": return formula(sub("k", "j"), "=", sub("K", "j"));
    case "dot":
      return formula(
        sub("q", "i"), "·", sub("k", "j"), "=",
        around("∑", row("c", "=", "1"), "d"), sub("q", row("i", "c")), sub("k", row("j", "c")),
      );
    case "scale":
      return of.scale === "root"
        ? formula(s(), "=", fraction(row(sub("q", "i"), "·", sub("k", "j")), root("d")))
        : formula(s(), "=", row("(", sub("q", "i"), "·", sub("k", "j"), ")", "×", functionName("scale")));
    case "softcap":
      return formula(s(), "←", functionName("cap"), "·", functionName("tanh"), "(", fraction(s(), functionName("cap")), ")");
    case "bias": return formula(s(), "←", s(), "+", sub("b", row("i", "j")));
    case "mask":
      return formula(s(), "←", cases([s(), words(of.blocked)], [row("−", "∞"), words(of.otherwise)]));
    case "softmax": {
      const all = row(under("∑", "l"), functionName("exp"), "(", sub("s", row("i", "l")), "−", sub("m", "i"), ")");
      const total = of.sink ? row(all, "+", functionName("exp"), "(", functionName("sink"), "−", sub("m", "i"), ")") : all;
      return formula(
        w(), "=", fraction(power(), total), ",", sub("m", "i"), "=", under(functionName("max"), "l"), sub("s", row("i", "l")),
      );
    }
    case "value": return formula(w(), sub("v", "j"));
    case "mix": return formula(sub(functionName("mix"), "i"), "=", under("∑", "j"), w(), sub("v", "j"));
    default: return null;
  }
}
