/** Formulas as MathML Core, built node by node. */
const SPACE = "http://www.w3.org/1998/Math/MathML";
export type Part = Element | string;

function make(name: string, children: readonly Part[], attributes: Readonly<Record<string, string>> = {}): Element {
  const element = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children.map((child) => (typeof child === "string" ? atom(child) : child)));
  return element;
}

/** A string as what it is: a number, a name or an operator. */
function atom(text: string): Element {
  const kind = /^[\d.]/.test(text) ? "mn" : /^\p{L}/u.test(text) ? "mi" : "mo";
  const element = document.createElementNS(SPACE, kind);
  element.textContent = text;
  return element;
}

export const row = (...parts: Part[]): Element => make("mrow", parts);
export const sub = (base: Part, below: Part): Element => make("msub", [base, below]);
export const fraction = (above: Part, below: Part): Element => make("mfrac", [above, below]);
export const root = (inside: Part): Element => make("msqrt", [inside]);
export const under = (base: Part, below: Part): Element => make("munder", [base, below]);
export const around = (base: Part, below: Part, above: Part): Element => make("munderover", [base, below, above]);
/** Words inside a formula, upright. */
export const words = (text: string): Element => {
  const element = document.createElementNS(SPACE, "mtext");
  element.textContent = text;
  return element;
};
/** A name of several letters, upright, as exp or tanh. */
export const functionName = (name: string): Element => words(name);
/** One of several cases: what it is, and when. */
export const cases = (...lines: readonly (readonly [Part, Part])[]): Element =>
  row(
    "{",
    make("mtable", lines.map((line) => make("mtr", line.map((cell) => make("mtd", [cell], { columnalign: "left" }))))),
  );
/** The formula itself, on a line of its own. */
export const formula = (...parts: Part[]): Element => make("math", [row(...parts)], { display: "block" });
