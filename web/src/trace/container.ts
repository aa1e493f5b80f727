/** The arrays of safetensors bytes by name, once all that their header says was found to fit. Nothing is copied. */
import { SIZES, type StoredArray } from "./bytes";
import type { ErrorDetails } from "./errors";
import { isObject } from "./objects";

export interface Container {
  readonly metadata: Readonly<Record<string, string>>;
  readonly arrays: ReadonlyMap<string, StoredArray>;
}

export type Trouble = "small" | "unfinished" | "foreign" | "cut" | "header" | "array" | "long";
/** Makes the error for what is wrong, such as "holds 3 bytes, too few"; who reads knows what it is that does. */
export type MakeError = (trouble: Trouble, what: string, about?: ErrorDetails) => Error;

const LONGEST = 100_000_000; // bytes of a header

/** All that stands in these bytes; throws what `wrong` makes where they are no whole container. */
export function parseContainer(given: ArrayBuffer | Uint8Array, wrong: MakeError): Container {
  const bytes = given instanceof Uint8Array ? given : new Uint8Array(given);
  const size = bytes.length;
  if (size < 8) throw wrong("small", `holds ${size} bytes, too few`, { size });
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset, 8).getBigUint64(0, true));
  if (length === 0) throw wrong("unfinished", "was never finished: whoever wrote it stopped before the end");
  if (length > LONGEST || bytes[8] !== 0x7b) throw wrong("foreign", "does not begin like safetensors");
  if (length > size - 8)
    throw wrong("cut", `is cut off: its header alone has ${length} bytes, all of it ${size}`, { size });
  const { __metadata__: metadata = {}, ...entries } = parseHeader(bytes.subarray(8, 8 + length), wrong);
  if (!isObject(metadata) || !Object.values(metadata).every((value) => typeof value === "string"))
    throw wrong("header", "has metadata that are not text by name");
  const arrays = new Map<string, StoredArray>();
  const places: [start: number, stop: number, name: string][] = [];
  for (const [name, entry] of Object.entries(entries)) {
    const { stored, start, stop } = arrayOf(name, entry, bytes, 8 + length, wrong);
    arrays.set(name, stored);
    places.push([start, stop, name]);
  }
  places.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  let at = 8 + length;
  for (const [start, stop, name] of places) {
    if (start !== at) throw wrong("array", "holds arrays that overlap or leave a gap", { array: short(name) });
    at = stop;
  }
  const more = size - at;
  if (more !== 0) throw wrong("long", `has ${more} bytes at its end that belong to no array`, { more });
  return { metadata: metadata as Record<string, string>, arrays };
}

/** A name from a stranger, short enough for a sentence. */
export const short = (text: string): string => (text.length > 80 ? `${text.slice(0, 80)}…` : text);

function parseHeader(text: Uint8Array, wrong: MakeError): Record<string, unknown> {
  let header: unknown;
  try {
    header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(text));
  } catch {
    throw wrong("header", "has a header that cannot be read");
  }
  if (!isObject(header)) throw wrong("header", "has a header that is no JSON object");
  return header;
}

interface PlacedArray {
  readonly stored: StoredArray;
  readonly start: number;
  readonly stop: number;
}

function arrayOf(name: string, entry: unknown, bytes: Uint8Array, begin: number, wrong: MakeError): PlacedArray {
  const array = short(name);
  const damaged = (what: string): Error => wrong("array", `holds the array ${array}, which ${what}`, { array });
  if (!isObject(entry)) throw damaged("is not described");
  const { dtype, shape, data_offsets: offsets } = entry;
  if (typeof dtype !== "string" || !Object.hasOwn(SIZES, dtype))
    throw damaged(`is of the unknown kind ${short(String(dtype))}`);
  if (!wholeNumbers(shape) || shape.length > 8) throw damaged("has no shape that can be held");
  if (!wholeNumbers(offsets) || offsets.length !== 2 || offsets[0]! > offsets[1]!)
    throw damaged("does not say where it stands");
  const [first, last] = offsets as unknown as [number, number];
  const need = shape.reduce((product, side) => product * side, SIZES[dtype]!);
  if (need !== last - first) throw damaged(`has ${last - first} bytes, but its shape needs ${need}`);
  const start = begin + first, stop = begin + last, size = bytes.length;
  if (stop > size) throw wrong("cut", `is cut off: ${array} would end at byte ${stop} of ${size}`, { size });
  return { stored: { dtype, shape, bytes: bytes.subarray(start, stop) }, start, stop };
}

const wholeNumbers = (given: unknown): given is readonly number[] =>
  Array.isArray(given) && given.every((one) => Number.isSafeInteger(one) && (one as number) >= 0);
