/** Tokens as text that can be drawn: marks for what cannot be seen, and long ones cut in the middle. */

const NAMES: Readonly<Record<number, string>> = {
  0x00: "NUL", 0x07: "BEL", 0x08: "BS", 0x0b: "VT", 0x0c: "FF", 0x0d: "CR", 0x1b: "ESC", 0x7f: "DEL",
  0x85: "NEL", 0xad: "SHY", 0x61c: "ALM", 0x200b: "ZWSP", 0x200c: "ZWNJ", 0x200d: "ZWJ", 0x200e: "LRM", 0x200f: "RLM",
  0x2028: "LS", 0x2029: "PS", 0x202a: "LRE", 0x202b: "RLE", 0x202c: "PDF", 0x202d: "LRO", 0x202e: "RLO", 0x2060: "WJ",
  0x2066: "LRI", 0x2067: "RLI", 0x2068: "FSI", 0x2069: "PDI", 0xfeff: "BOM",
};
const SIGNS: Readonly<Record<number, string>> = { 0x09: "⇥", 0x0a: "⏎", 0xa0: "⍽" };
const LONGEST = 400; // characters of either end that are looked at; nobody reads ten thousand on an axis

/** A stretch of a token; `mark` where it stands for something that cannot be seen. */
export interface Piece {
  readonly text: string;
  readonly mark: boolean;
}

const joins = (code: number): boolean => code === 0x200c || code === 0x200d;

/** The mark of a character that cannot be seen, null where it can. */
function markOf(code: number, edge: boolean, alone: boolean): string | null {
  if (code === 0x20) return edge ? "␣" : null;
  if (joins(code) && !alone) return null; // inside emoji and Persian words they have work to do
  const sign = SIGNS[code];
  if (sign !== undefined) return sign;
  const name = NAMES[code];
  if (name !== undefined) return `⟨${name}⟩`;
  const within = (first: number, end: number): boolean => code >= first && code < end;
  const hidden = within(0, 0x20) || within(0x80, 0xa0) || within(0xd800, 0xe000) || within(0xfff0, 0xfffc);
  return hidden || (code & 0xfffe) === 0xfffe ? `⟨${code.toString(16).toUpperCase().padStart(4, "0")}⟩` : null;
}

/** A token in stretches that can be drawn, marks apart from text so that they can be pale. */
export function pieces(text: string): Piece[] {
  if (text === "") return [{ text: "∅", mark: true }];
  const characters = Array.from(text);
  const inner = characters.findIndex((c) => c !== " "), last = characters.findLastIndex((c) => c !== " ");
  const alone = characters.every((c) => joins(c.codePointAt(0)!));
  const out: { text: string; mark: boolean }[] = [];
  characters.forEach((character, i) => {
    const edge = inner < 0 || i < inner || i > last;
    const sign = markOf(character.codePointAt(0)!, edge, alone);
    const before = out[out.length - 1];
    if (before !== undefined && before.mark === (sign !== null)) before.text += sign ?? character;
    else out.push({ text: sign ?? character, mark: sign !== null });
  });
  return out;
}

/** A token with marks in place of what cannot be seen: edge spaces, control characters, bidi controls, lone halves. */
export const markInvisible = (text: string): string => pieces(text).map((piece) => piece.text).join("");

/** A sentence that stands alone. */
export const capitalise = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;

/** Text that keeps its own direction amid other text. */
export const isolateText = (text: string): string => `\u2068${text}\u2069`;

const segmenter = typeof Intl.Segmenter === "function"
  ? new Intl.Segmenter(undefined, { granularity: "grapheme" })
  : null;

/** What a reader takes for characters: an emoji family is one. */
export const graphemes = (text: string): string[] =>
  segmenter === null ? Array.from(text) : Array.from(segmenter.segment(text), (part) => part.segment);

/** The text if it fits into `width`, else cut in the middle: "inter…ation". At least one letter stays. */
export function clipText(text: string, width: number, measure: (text: string) => number): string {
  if (text.length <= 2 * LONGEST && measure(text) <= width) return text;
  const long = text.length > 2 * LONGEST;
  const head = graphemes(long ? text.slice(0, LONGEST) : text), tail = long ? graphemes(text.slice(-LONGEST)) : head;
  const cut = (count: number): string =>
    `${head.slice(0, Math.ceil(count / 2)).join("")}…${tail.slice(tail.length - Math.floor(count / 2)).join("")}`;
  let fits = 1, fails = long ? 2 * LONGEST : Math.max(2, head.length); // letters kept
  while (fails - fits > 1) {
    const middle = (fits + fails) >> 1;
    if (measure(cut(middle)) <= width) fits = middle;
    else fails = middle;
  }
  return head.length <= 1 && !long ? text : cut(fits);
}

/** The first letters of a token and the count of the rest, for tooltips: ten thousand letters fit no screen. */
export function shortenText(text: string, most = 300): string {
  const seen = markInvisible(text.length > 4 * most ? text.slice(0, 4 * most) : text);
  return seen.length <= most && text.length <= 4 * most
    ? seen
    : `${graphemes(seen).slice(0, most).join("")}… (${text.length})`;
}
