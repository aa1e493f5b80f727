/** The names of rows and columns: tokens where they are known, else numbers. Made when they are first drawn. */
import { type Piece, pieces, shortenText } from "../../paint/text";
import type { Tokens } from "../../trace/source";

export const FONT = "system-ui, 'Noto Sans', 'Noto Sans CJK SC', sans-serif";
export const fontOf = (strong = false): string => `${strong ? "600 " : ""}12px ${FONT}`;

export interface Name {
  readonly text: string; // as it can be drawn
  readonly full: string; // for tooltips
  readonly pieces: readonly Piece[];
  readonly pale: boolean; // special tokens, and numbers in place of names
}
export interface AxisNames {
  readonly count: number;
  readonly known: boolean;
  readonly at: (i: number) => Name;
}

const LONGEST = 1200; // characters that can matter to a cut name: a few hundred at either end

function nameOf(token: string | undefined, i: number, special: boolean): Name {
  if (token === undefined)
    return { text: String(i), full: String(i), pieces: [{ text: String(i), mark: false }], pale: true };
  const near = token.length > LONGEST ? `${token.slice(0, LONGEST / 2)}${token.slice(-LONGEST / 2)}` : token;
  const parts = pieces(near);
  return { text: parts.map((part) => part.text).join(""), full: shortenText(token, 160), pieces: parts, pale: special };
}

/** The names of `count` rows or columns. */
export function axisNames(tokens: Tokens | null, count: number): AxisNames {
  const names = new Map<number, Name>();
  const at = (i: number): Name => {
    const name = names.get(i) ?? nameOf(tokens?.shown[i], i, tokens?.special?.[i] ?? false);
    if (names.size > 5000) names.clear();
    names.set(i, name);
    return name;
  };
  return { count, known: tokens !== null, at };
}

/** The width of the widest of these names, as far as a few hundred of them tell. */
export function widest(names: AxisNames, measure: (text: string) => number, most: number): number {
  const step = Math.max(1, Math.floor(names.count / 300));
  let width = 0;
  for (let i = 0; i < names.count && width < most; i += step)
    width = Math.max(width, measure(names.at(i).text.slice(0, 60)));
  return Math.min(most, width);
}

/** Measures text once; the context's font must not change between. */
export function ruler(context: CanvasRenderingContext2D): (text: string) => number {
  const widths = new Map<string, number>();
  return (text) => {
    const known = widths.get(text);
    if (known !== undefined) return known;
    if (widths.size > 20_000) widths.clear();
    context.save();
    context.font = fontOf();
    const { width } = context.measureText(text);
    context.restore();
    widths.set(text, width);
    return width;
  };
}
