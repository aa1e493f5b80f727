/** Pictures as plain trees: painted as elements on the screen and as text in a file, the same either way. */
import { type Markup, node, svgDocument } from "../../paint/svg";
import type { Theme } from "../../paint/theme";

export interface Shape {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly inside: readonly (Shape | string)[];
  readonly mark?: string; // what somebody who brings it to life knows it by
}

export const shape = (
  name: string, attributes: Shape["attributes"], ...inside: (Shape | string)[]
): Shape => ({ name, attributes, inside });

/** A line of text. */
export const textShape = (x: number, y: number, text: string, attributes: Shape["attributes"] = {}): Shape =>
  shape("text", { x, y, "font-size": 12, ...attributes }, text);

/** As text, for a file. */
export const asMarkup = (of: Shape): Markup =>
  node(of.name, of.attributes, ...of.inside.map((one) => (typeof one === "string" ? one : asMarkup(one))));

const SPACE = "http://www.w3.org/2000/svg";

/** As elements; `enliven` is called with each marked one. */
export function asElement(
  of: Shape, enliven: (element: SVGElement, mark: string) => void = () => undefined,
): SVGElement {
  const element = document.createElementNS(SPACE, of.name);
  for (const [key, value] of Object.entries(of.attributes)) element.setAttribute(key, String(value));
  element.append(...of.inside.map((one) => (typeof one === "string" ? one : asElement(one, enliven))));
  if (of.mark !== undefined) enliven(element, of.mark);
  return element;
}

/** A file that holds a sentence, where there is no picture to give. */
export const messageFile = (text: string, theme: Theme): string =>
  svgDocument(
    640, 48,
    [
      shape("rect", { width: 640, height: 48, fill: theme.ground }), textShape(16, 28, text, { fill: theme.ink }),
    ].map(asMarkup),
  );
