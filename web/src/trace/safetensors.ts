/** Arrays by name from safetensors bytes, as Python answers with them. Nothing that the header says is believed unseen. */

export type Numbered = Float32Array | Int32Array | Uint8Array;

export interface Blob {
  readonly metadata: Readonly<Record<string, string>>;
  readonly arrays: Readonly<Record<string, Numbered>>;
}

const SIZES: Readonly<Record<string, number>> = { F64: 8, F32: 4, F16: 2, BF16: 2, I32: 4, U8: 1, BOOL: 1 };
const bad = (what: string): Error => new Error(`The answer cannot be read: ${what}.`);
const isObject = (given: unknown): given is Record<string, unknown> =>
  typeof given === "object" && given !== null && !Array.isArray(given);

/** All arrays of a blob; floats come out as float32. Throws an Error of one sentence where the bytes are no whole blob. */
export function readSafetensors(given: ArrayBuffer | Uint8Array): Blob {
  const bytes = given instanceof Uint8Array ? given : new Uint8Array(given);
  if (bytes.length < 8) throw bad(`it holds ${bytes.length} bytes, which is too few`);
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset, 8).getBigUint64(0, true));
  if (length > bytes.length - 8) throw bad(`its header would be ${length} bytes long, but there are ${bytes.length - 8}`);
  const { __metadata__: metadata = {}, ...entries } = headerOf(bytes.subarray(8, 8 + length));
  if (!isObject(metadata) || !Object.values(metadata).every((value) => typeof value === "string"))
    throw bad("its metadata are not text by name");
  const data = bytes.subarray(8 + length);
  const places = Object.entries(entries).map(([name, entry]) => placeOf(name, entry));
  let at = 0;
  for (const { name, start, stop } of [...places].sort((a, b) => a.start - b.start || a.stop - b.stop)) {
    if (start !== at) throw bad(`the array ${name} overlaps another or leaves a gap`);
    at = stop;
  }
  if (at !== data.length) throw bad(`its arrays take ${at} bytes, but there are ${data.length}`);
  const arrays = places.map(({ name, kind, start, stop }) => [name, numbered(kind, data.subarray(start, stop))] as const);
  return { metadata: metadata as Record<string, string>, arrays: Object.fromEntries(arrays) };
}

function headerOf(bytes: Uint8Array): Record<string, unknown> {
  let found: unknown;
  try {
    found = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw bad("its header is no JSON");
  }
  if (!isObject(found)) throw bad("its header is no object");
  return found;
}

interface Place {
  readonly name: string;
  readonly kind: string;
  readonly start: number;
  readonly stop: number;
}

function placeOf(name: string, entry: unknown): Place {
  const { dtype, shape, data_offsets: offsets } = isObject(entry) ? entry : {};
  const size = typeof dtype === "string" && Object.hasOwn(SIZES, dtype) ? SIZES[dtype] : undefined;
  if (typeof dtype !== "string" || size === undefined) throw bad(`the array ${name} is of the unknown kind ${String(dtype)}`);
  if (!counts(shape) || !counts(offsets) || offsets.length !== 2) throw bad(`the array ${name} has no shape or no place`);
  const [start, stop] = [offsets[0]!, offsets[1]!];
  const wanted = shape.reduce((product, side) => product * side, size);
  if (stop - start !== wanted) throw bad(`the array ${name} has ${stop - start} bytes, but its shape needs ${wanted}`);
  return { name, kind: dtype, start, stop };
}

const counts = (given: unknown): given is readonly number[] =>
  Array.isArray(given) && given.every((one) => Number.isSafeInteger(one) && (one as number) >= 0);

/** The numbers of one array: a view where its bytes stand at an even place, a copy elsewhere. */
function numbered(kind: string, bytes: Uint8Array): Numbered {
  if (kind === "U8" || kind === "BOOL") return bytes;
  const whole = bytes.byteOffset % SIZES[kind]! === 0 ? bytes : bytes.slice();
  const count = bytes.length / SIZES[kind]!;
  if (kind === "F32") return new Float32Array(whole.buffer, whole.byteOffset, count);
  if (kind === "I32") return new Int32Array(whole.buffer, whole.byteOffset, count);
  if (kind === "F64") return Float32Array.from(new Float64Array(whole.buffer, whole.byteOffset, count));
  const halves = new Uint16Array(whole.buffer, whole.byteOffset, count);
  if (kind === "F16") return Float32Array.from(halves, half);
  const wide = Uint32Array.from(halves, (bits) => bits << 16); // a bfloat16 is the upper half of a float32
  return new Float32Array(wide.buffer);
}

/** The number that 16 bits stand for (IEEE 754 binary16). */
function half(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : fraction * 2 ** -24);
}
