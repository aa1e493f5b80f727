/** The arrays of a safetensors file by name, once all that its header says was found to fit. Nothing is copied. */
import { SIZES, type Stored } from "./bytes";
import { TraceError, short } from "./wrong";

export interface Container {
  readonly metadata: Readonly<Record<string, string>>;
  readonly arrays: ReadonlyMap<string, Stored>;
}

const LONGEST = 100_000_000; // bytes of a header

export function readContainer(given: ArrayBuffer | Uint8Array): Container {
  const bytes = given instanceof Uint8Array ? given : new Uint8Array(given);
  const size = bytes.length;
  if (size < 8) throw new TraceError(`The file holds ${size} bytes, too few for a trace; write it again.`);
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset, 8).getBigUint64(0, true));
  if (length === 0)
    throw new TraceError("The file was never finished: whoever wrote it stopped before the end; watch again.");
  if (length > LONGEST || bytes[8] !== 0x7b)
    throw new TraceError("This is no trace file: it does not begin like safetensors; give a file from trace.save.");
  if (length > size - 8)
    throw new TraceError(`The file is cut off: its header alone has ${length} bytes, the file ${size}; copy it again.`);
  const header = parsed(bytes.subarray(8, 8 + length));
  const { __metadata__: metadata = {}, ...entries } = header;
  if (!isObject(metadata) || !Object.values(metadata).every((value) => typeof value === "string"))
    throw new TraceError("The file has metadata that are not text by name; write it again.");
  const arrays = new Map<string, Stored>();
  const places: [number, number][] = [];
  for (const [name, entry] of Object.entries(entries)) {
    const { stored, place } = arrayOf(name, entry, bytes, 8 + length);
    arrays.set(name, stored);
    places.push(place);
  }
  places.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  let at = 8 + length;
  for (const [start, stop] of places) {
    if (start !== at)
      throw new TraceError("The file holds arrays that overlap or leave a gap; it is damaged, write it again.");
    at = stop;
  }
  if (at !== size)
    throw new TraceError(`The file has ${size - at} bytes at its end that belong to no array; it is damaged.`);
  return { metadata: metadata as Record<string, string>, arrays };
}

const isObject = (given: unknown): given is Record<string, unknown> =>
  typeof given === "object" && given !== null && !Array.isArray(given);

function parsed(text: Uint8Array): Record<string, unknown> {
  let found: unknown;
  try {
    found = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(text));
  } catch {
    throw new TraceError("The file has a header that cannot be read; it is damaged, write it again.");
  }
  if (!isObject(found)) throw new TraceError("The file has a header that is no JSON object; write it again.");
  return found;
}

interface Placed {
  readonly stored: Stored;
  readonly place: [number, number];
}

function arrayOf(name: string, entry: unknown, bytes: Uint8Array, begin: number): Placed {
  const wrong = (what: string): TraceError =>
    new TraceError(`The array ${short(name)} of the file ${what}; it is damaged.`);
  if (!isObject(entry)) throw wrong("is not described");
  const { dtype, shape, data_offsets: offsets } = entry;
  if (typeof dtype !== "string" || !Object.hasOwn(SIZES, dtype)) throw wrong("is of an unknown kind");
  if (!wholeNumbers(shape) || shape.length > 8) throw wrong("has no shape that a file can hold");
  if (!wholeNumbers(offsets) || offsets.length !== 2 || offsets[0]! > offsets[1]!)
    throw wrong("does not say where it stands");
  const [first, last] = offsets as unknown as [number, number];
  const need = shape.reduce((product, side) => product * side, SIZES[dtype]!);
  if (need !== last - first) throw wrong(`has ${last - first} bytes, but its shape needs ${need}`);
  const start = begin + first, stop = begin + last;
  if (stop > bytes.length)
    throw new TraceError(`The file is cut off: ${short(name)} would end at byte ${stop} of ${bytes.length}; copy it again.`);
  return { stored: { dtype, shape, bytes: bytes.subarray(start, stop) }, place: [start, stop] };
}

const wholeNumbers = (given: unknown): given is readonly number[] =>
  Array.isArray(given) && given.every((one) => Number.isSafeInteger(one) && (one as number) >= 0);
