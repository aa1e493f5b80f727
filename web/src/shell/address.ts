/**
 * The address of what is looked at: `#/trace=ab12&view=map&layer=2&head=5&q=7&k=3&zoom=0,0,8,8`. What is as usual is
 * left out. Whatever stands in it is read without trust: foreign parts are passed over, bad ones become the usual.
 */
import {
  type BesideHead, type DrawSettings, FIRST, MOST_RESIDUAL, NEAREST, PLAIN, type Selection, VIEWS, type ViewName, type Zoom,
} from "../choose/choice";

export interface AddressPlace {
  readonly trace: string; // "" where the address names none
  readonly run: number | null; // which run of the trace; null: its last
  readonly other: string; // what it is compared with
  readonly picked: Selection;
  readonly drawn: DrawSettings;
}

export const START: AddressPlace = { trace: "", run: null, other: "", picked: FIRST, drawn: PLAIN };

const LONGEST = 4096; // characters of a hash, and heads of a list, that are read at all
const count = (text: string | undefined): number | null =>
  text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : null;
const short = (value: number): string => String(Number(value.toFixed(3)));
const name = (text: string | undefined): string => (text ?? "").slice(0, 200);

function zoomOf(text: string | undefined): Zoom | null {
  const parts = (text ?? "").split(",");
  if (parts.length !== 4 || !parts.every((part) => /^\d{1,9}(\.\d{1,6})?$/.test(part))) return null;
  const [left, top, right, bottom] = parts.map(Number) as [number, number, number, number];
  return left < right && top < bottom ? { left, top, right, bottom } : null;
}

function besideOf(text: string | undefined): BesideHead | null {
  const [layer, head] = (text ?? "").split(",").map((part) => count(part));
  return typeof layer === "number" && typeof head === "number" ? { layer, head } : null;
}

const share = (text: string | undefined, most: number, usual: number): number =>
  text !== undefined && /^[01](\.\d{1,6})?$/.test(text) ? Math.min(most, Number(text)) : usual;
const near = (text: string | undefined): number =>
  text !== undefined && /^\d{1,2}(\.\d{1,6})?$/.test(text) ? Math.max(1, Math.min(NEAREST, Number(text))) : PLAIN.near;

const oneOf = <T extends string>(text: string | undefined, wanted: readonly T[], usual: T): T =>
  wanted.find((value) => value === text) ?? usual;

/** The parts of a hash by name; a part that is not valid percent-encoding is passed over. */
function parts(hash: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (const part of hash.slice(0, LONGEST).replace(/^#?\/?/, "").split("&")) {
    const at = part.indexOf("=");
    if (at < 1) continue;
    try {
      values.set(part.slice(0, at), decodeURIComponent(part.slice(at + 1)));
    } catch {
      // a stray % in a link that somebody cut: the rest is still good
    }
  }
  return values;
}

/** Whether an address says which layer is meant. */
export const namesLayer = (hash: string): boolean => parts(hash).has("layer");

/** What an address asks for; any text gives a place. */
export function readAddress(hash: string): AddressPlace {
  const part = parts(hash);
  const of = (key: string): string | undefined => part.get(key);
  return {
    trace: name(of("trace")), run: count(of("run")), other: name(of("with")),
    picked: {
      view: oneOf<ViewName>(of("view"), VIEWS, FIRST.view),
      layer: count(of("layer")) ?? 0, head: count(of("head")) ?? 0, batch: count(of("batch")) ?? 0,
      heads: [...new Set((of("heads") ?? "").split(",").flatMap((text) => count(text) ?? []))],
      query: count(of("q")), key: count(of("k")), zoom: zoomOf(of("zoom")),
      beside: besideOf(of("beside")),
    },
    drawn: {
      scale: oneOf(of("scale"), ["linear", "log", "rank"], PLAIN.scale),
      pool: oneOf(of("pool"), ["max", "mean"], PLAIN.pool),
      threshold: share(of("min"), 1, PLAIN.threshold),
      hide: of("hide") === "1", sort: name(of("sort")), falling: of("rising") !== "1",
      residual: share(of("stays"), MOST_RESIDUAL, PLAIN.residual), by: oneOf(of("by"), ["weights", "values"], PLAIN.by),
      near: near(of("near")),
    },
  };
}

/** The address of a place; `readAddress` gives the place back (a zoom to a thousandth of a token). */
export function writeAddress({ trace, run, other, picked, drawn }: AddressPlace): string {
  const { zoom, beside } = picked;
  const all: readonly (readonly [string, string | null])[] = [
    ["trace", trace || null], ["run", run === null ? null : String(run)], ["with", other || null],
    ["view", picked.view], ["layer", String(picked.layer)], ["head", String(picked.head)],
    ["heads", picked.heads.length ? picked.heads.join(",") : null],
    ["batch", picked.batch ? String(picked.batch) : null],
    ["q", picked.query === null ? null : String(picked.query)], ["k", picked.key === null ? null : String(picked.key)],
    ["zoom", zoom && [zoom.left, zoom.top, zoom.right, zoom.bottom].map(short).join(",")],
    ["beside", beside && `${beside.layer},${beside.head}`],
    ["scale", drawn.scale === PLAIN.scale ? null : drawn.scale],
    ["pool", drawn.pool === PLAIN.pool ? null : drawn.pool],
    ["min", drawn.threshold === PLAIN.threshold ? null : short(drawn.threshold)],
    ["hide", drawn.hide ? "1" : null], ["sort", drawn.sort || null], ["rising", drawn.falling ? null : "1"],
    ["stays", drawn.residual === PLAIN.residual ? null : short(drawn.residual)],
    ["by", drawn.by === PLAIN.by ? null : drawn.by], ["near", drawn.near === PLAIN.near ? null : short(drawn.near)],
  ];
  const present = all.filter((entry): entry is readonly [string, string] => entry[1] !== null);
  const written = (value: string): string => encodeURIComponent(wellFormed(value)).replaceAll("%2C", ",");
  return `#/${present.map(([key, value]) => `${key}=${written(value)}`).join("&")}`;
}

/** A lone surrogate has no percent-encoding; it becomes the replacement character. */
const wellFormed = (text: string): string =>
  text.replace(/[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g, "\uFFFD");
