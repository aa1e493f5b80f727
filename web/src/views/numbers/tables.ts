/** Numbers as tables that can be read, selected and copied: matrices with token names, and strips of channels. */
import { inkOn, ramp } from "../../paint/color";
import { clipText, shortenText, markInvisible } from "../../paint/text";
import type { Theme } from "../../paint/theme";
import type { Say } from "../../language/language";
import { fourDigits } from "../../paint/digits";
import { type Child, h } from "../parts/element";

export const FEW = 16; // as many channels are shown without asking
const FIRST = 8; // of more than that, so many

/** What all tables of one drawing share. */
export interface Page {
  readonly say: Say;
  readonly theme: Theme;
  readonly open: boolean; // all channels are wanted
  readonly queries: (at: number) => string;
  readonly keys: (at: number) => string;
}

/** How many of `count` channels are shown. */
export const shownCount = (count: number, open: boolean): number => (open || count <= FEW ? count : FIRST);

/** Puts the colour of t (0 to 1) behind an element; `strength` 1 is the map's own colour. */
export function tint(element: HTMLElement, t: number, theme: Theme, strength: number): void {
  const scale = ramp(theme.dark), at = 4 * Math.round(255 * Math.max(0, Math.min(1, t || 0)));
  const mixed = [0, 1, 2].map(
    (i) => Math.round(scale[i]! + (scale[at + i]! - scale[i]!) * strength)
  ) as [number, number, number];
  element.style.backgroundColor = `rgb(${mixed.join(", ")})`;
  element.style.color = inkOn(...mixed);
}

/** The name of a token as it stands in a table: cut in the middle, whole in the title. */
export function nameCell(kind: "query" | "key", text: string, at: number, hand = false): HTMLElement {
  const name = clipText(markInvisible(text), 12, (part) => [...part].length);
  return h(
    "th", { scope: "row", class: hand ? `${kind} hand` : kind, title: `${at} ${shortenText(text)}` }, h("bdi", {}, name),
  );
}

/** One number. Its title holds all digits. */
export const cell = (value: number, kind = ""): HTMLTableCellElement =>
  h("td", { class: kind, title: String(value) }, fourDigits(value));

export interface MatrixOf {
  readonly name: string;
  readonly rows: readonly number[]; // places of the tokens
  readonly rowKind: "query" | "key";
  readonly columns: readonly number[]; // places of keys, or channels
  readonly columnKind: "key" | "channel";
  readonly width: number; // columns of the matrix, also those not shown
  readonly value: (row: number, column: number) => number; // counted within the matrix
  readonly open?: (row: number, column: number) => boolean; // may be looked at
  readonly closed?: string; // what stands in a cell that may not be looked at
  readonly hand: readonly [row: number, column: number]; // −1: the whole row, or none
  readonly strength: number;
}

/** A matrix whole, tinted by the size of its numbers, in a frame that scrolls. Cells of the map carry their place. */
export function matrix(of: MatrixOf, page: Page): HTMLElement {
  const [handRow, handColumn] = of.hand;
  let most = 0;
  for (let r = 0; r < of.rows.length; r++)
    for (let c = 0; c < of.width; c++)
      if (of.open?.(r, c) ?? true) most = Math.max(most, Math.abs(of.value(r, c)) || 0);
  const nameOf = of.rowKind === "query" ? page.queries : page.keys;
  const left = of.width - of.columns.length;
  const head = of.columns.map((at, c) =>
    of.columnKind === "channel"
      ? h("th", { scope: "col", class: "channel" }, String(at + 1))
      : columnName(page.keys(at), at, c === handColumn),
  );
  if (left > 0) head.push(h("th", { scope: "col", class: "channel" }, page.say("numbers.more", { count: left })));
  const lines = of.rows.map((at, r) => {
    const line = h("tr", {}, nameCell(of.rowKind, nameOf(at), at, r === handRow));
    of.columns.forEach((_, c) => {
      const hand = r === handRow && (handColumn < 0 || c === handColumn);
      const value = of.value(r, c);
      const open = (of.open?.(r, c) ?? true) && !Number.isNaN(value); // no number: the two never met
      const one = open ? cell(value) : h("td", { title: page.say("numbers.blocked") }, of.closed ?? "");
      one.className = `${hand ? "hand" : ""} ${open ? "" : "blocked"}`.trim();
      if (open) tint(one, Math.abs(value) / most, page.theme, of.strength);
      if (of.columnKind === "key") Object.assign(one.dataset, { query: at, key: of.columns[c] });
      else if (of.rowKind === "key") Object.assign(one.dataset, { key: at });
      else Object.assign(one.dataset, { query: at });
      line.append(one);
    });
    if (left > 0) line.append(h("td", { class: "pale" }, "…"));
    return line;
  });
  return inFigure(
    of.name,
    h(
      "table", { class: "matrix" }, h("thead", {}, h("tr", {}, h("td", { class: "corner" }), ...head)),
      h("tbody", {}, ...lines),
    ),
  );
}

function columnName(text: string, at: number, hand: boolean): HTMLElement {
  const name = nameCell("key", text, at, hand);
  name.setAttribute("scope", "col");
  return name;
}

/** A table with its name, in a frame that the keyboard can scroll. */
export function inFigure(name: string, table: HTMLTableElement): HTMLElement {
  return h(
    "figure", {}, h("figcaption", {}, name),
    h("div", { class: "frame", tabindex: 0, role: "region", "aria-label": name }, table),
  );
}

/** A vector as a strip of numbers, the first few of a long one. */
export function strip(values: Float32Array, page: Page): HTMLElement {
  const count = shownCount(values.length, page.open);
  const numbers: Child[] = Array.from(values.subarray(0, count), (value, i) =>
    h("li", { title: `${i + 1}: ${value}` }, fourDigits(value)));
  if (count < values.length) numbers.push(
    h("li", { class: "pale" }, page.say("numbers.more", { count: values.length - count }))
  );
  return h("ul", { class: "strip" }, ...numbers);
}

/** A table of lines under a head; each line is a list of cells. */
export const lines = (head: readonly Child[], body: readonly (HTMLTableRowElement | null)[]): HTMLTableElement =>
  h(
    "table", { class: "lines" },
    h("thead", {}, h("tr", {}, ...head.map((one) => h("th", { scope: "col" }, one)))),
    h("tbody", {}, ...body),
  );
