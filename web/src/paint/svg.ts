/** SVG as text. Strings given as children are text and are escaped; only `node` makes markup. */

export interface Markup {
  readonly markup: string;
}
export type Child = Markup | string | number;
export type Attributes = Readonly<Record<string, string | number | null | undefined>>; // null: left out

const NAMES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** Text as it may stand in XML: escaped, and what XML cannot hold (NUL, lone halves of characters) as U+FFFD. */
export const escapeXml = (text: string): string =>
  text
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Surrogate}/gu, "\ufffd")
    .replace(/[&<>"']/g, (character) => NAMES[character]!);

const short = (value: string | number): string =>
  (typeof value === "number" ? String(Math.round(value * 1000) / 1000) : value);

/** One element. Numbers are rounded to thousandths. */
export function node(name: string, attributes: Attributes = {}, ...children: readonly Child[]): Markup {
  const list = Object.entries(attributes)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([key, value]) => ` ${key}="${escapeXml(short(value!))}"`)
    .join("");
  const inside = children.map((child) => (typeof child === "object" ? child.markup : escapeXml(short(child)))).join("");
  return { markup: inside === "" ? `<${name}${list}/>` : `<${name}${list}>${inside}</${name}>` };
}

/** A line of text. */
export const label = (x: number, y: number, words: string, attributes: Attributes = {}): Markup =>
  node("text", { x, y, "xml:space": "preserve", ...attributes }, words);

/** A whole SVG file of this size in CSS pixels. */
export const svgDocument = (width: number, height: number, children: readonly Child[]): string =>
  node(
    "svg",
    {
      xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${short(width)} ${short(height)}`,
      "font-family": "system-ui, 'Noto Sans', 'Noto Sans CJK SC', sans-serif", "font-size": 12,
    },
    ...children,
  ).markup;
