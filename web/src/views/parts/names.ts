/** Tokens by place, as they are shown. */
import { clipText, isolateText, shortenText, markInvisible } from "../../paint/text";
import { type Tokens, type TraceInfo, tokensOf } from "../../trace/source";

export interface TokenNames {
  readonly count: number;
  readonly raw: (place: number) => string; // the token itself, or its number where it is not known
  readonly short: (place: number, width: number) => string; // with marks, cut to a width
  readonly whole: (place: number) => string; // for tooltips and sentences; keeps its own direction
  readonly special: (place: number) => boolean;
  readonly widest: (most: number) => number; // pixels of the widest name, at most `most`
}

const LOOKED_AT = 4000; // names that are measured to size a column

/** The names of some tokens; `measure` gives the width of a text in the font they are drawn in. */
export function tokenNames(tokens: Tokens | null, count: number, measure: (text: string) => number): TokenNames {
  const cut = new Map<string, string>(); // names that were cut, by width and token
  const raw = (place: number): string => tokens?.shown[place] ?? String(place);
  const seen = (place: number): string => markInvisible(raw(place).slice(0, 1000));
  const short = (place: number, width: number): string => {
    const text = raw(place);
    const key = text.length > 200 ? `${text.slice(0, 100)}${text.length}${text.slice(-100)}` : text;
    const at = `${Math.round(width)} ${key}`;
    let name = cut.get(at);
    if (name === undefined) {
      if (cut.size > 20_000) cut.clear();
      const ends = text.length > 1000 ? `${text.slice(0, 500)}${text.slice(-500)}` : text; // the middle is cut anyway
      name = clipText(markInvisible(ends), width, measure);
      cut.set(at, name);
    }
    return name;
  };
  let measured: readonly [most: number, widest: number] = [-1, 0];
  const widest = (most: number): number => {
    if (measured[0] === most) return measured[1];
    let width = 0;
    for (let place = 0; place < Math.min(count, LOOKED_AT) && width < most; place++) {
      const text = seen(place);
      if (text.length * 16 > width) width = Math.max(width, text.length > 200 ? most : measure(text));
    }
    measured = [most, Math.min(most, width)];
    return measured[1];
  };
  return {
    count, raw, short, whole: (place) => isolateText(shortenText(raw(place), 120)),
    special: (place) => tokens?.special?.[place] ?? false, widest,
  };
}

/** The names of a layer's queries or keys. */
export function layerTokenNames(
  info: TraceInfo, layer: number, batch: number, which: "queries" | "keys", measure: (text: string) => number,
): TokenNames {
  const shape = info.layers[layer]?.shape ?? [0, 0, 0, 0];
  return tokenNames(tokensOf(info, layer, batch, which), shape[which === "queries" ? 2 : 3], measure);
}

/** The name of one token, with marks for what cannot be seen; its number where the text is not known. */
export const tokenName = (tokens: Tokens | null, at: number, most = 40): string => {
  const text = tokens?.shown[at];
  return text === undefined ? `${at}` : shortenText(text, most);
};

/** Short names of layers: without what all of them have in common. */
export function shortLayerNames(names: readonly string[]): readonly string[] {
  const parts = names.map((name) => name.split("."));
  const common = (at: (some: readonly string[]) => string | undefined): boolean =>
    names.length > 1 && parts.every((some) => some.length > 1 && at(some) === at(parts[0]!));
  let before = 0, after = 0;
  const more = (): boolean => parts.every((some) => some.length > before + after + 1);
  while (more() && common((some) => some[before])) before++;
  while (more() && common((some) => some[some.length - 1 - after])) after++;
  const cut = parts.map((some) => some.slice(before, some.length - after));
  const same = cut.every((some) => some.length === cut[0]!.length);
  const differs = (part: string, i: number): boolean => cut.some((other) => other[i] !== part);
  const kept = same && names.length > 1 ? cut.map((some) => some.filter(differs)) : cut;
  return kept.map((some, i) => some.join(".") || names[i]!);
}
