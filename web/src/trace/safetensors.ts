/** Arrays by name from safetensors bytes, as Python answers with them. Nothing that the header says is believed unseen. */
import { FLOATS, Reals, type StoredArray, readInt32 } from "./bytes";
import { CodedError } from "./errors";
import { type MakeError, parseContainer, short } from "./container";

export type Numbered = Float32Array | Int32Array | Uint8Array;

export interface Safetensors {
  readonly metadata: Readonly<Record<string, string>>;
  readonly arrays: Readonly<Record<string, Numbered>>;
}

const safetensorsError: MakeError = (_, what) => new CodedError(`The answer ${what}; load this page again.`, "answer.broken");

/** All arrays of a blob; floats come out as float32. Throws an Error of one sentence where the bytes are no whole blob. */
export function readSafetensors(given: ArrayBuffer | Uint8Array): Safetensors {
  const { metadata, arrays } = parseContainer(given, safetensorsError);
  return { metadata, arrays: Object.fromEntries([...arrays].map(([name, array]) => [name, toNumbers(name, array)])) };
}

/** The numbers of one array: a view where its bytes stand at an even place, a copy elsewhere. */
function toNumbers(name: string, array: StoredArray): Numbered {
  const { dtype, bytes } = array;
  if (dtype === "U8" || dtype === "BOOL") return bytes;
  if (dtype === "I32") return readInt32(array);
  if (!FLOATS.includes(dtype))
    throw safetensorsError("array", `holds the array ${short(name)}, which is of the unknown kind ${dtype}`);
  const reals = new Reals(dtype, bytes), numbers = reals.part(0, reals.length);
  return numbers instanceof Float32Array ? numbers : Float32Array.from(numbers);
}
