/** Arrays by name from safetensors bytes, as Python answers with them. Nothing that the header says is believed unseen. */
import { FLOATS, Reals, type Stored, wholes } from "./bytes";
import { Coded } from "./errors";
import { type Wrong, contained, short } from "./container";

export type Numbered = Float32Array | Int32Array | Uint8Array;

export interface Blob {
  readonly metadata: Readonly<Record<string, string>>;
  readonly arrays: Readonly<Record<string, Numbered>>;
}

const wrong: Wrong = (_, what) => new Coded(`The answer ${what}; load this page again.`, "answer.broken");

/** All arrays of a blob; floats come out as float32. Throws an Error of one sentence where the bytes are no whole blob. */
export function readSafetensors(given: ArrayBuffer | Uint8Array): Blob {
  const { metadata, arrays } = contained(given, wrong);
  return { metadata, arrays: Object.fromEntries([...arrays].map(([name, array]) => [name, numbered(name, array)])) };
}

/** The numbers of one array: a view where its bytes stand at an even place, a copy elsewhere. */
function numbered(name: string, array: Stored): Numbered {
  const { dtype, bytes } = array;
  if (dtype === "U8" || dtype === "BOOL") return bytes;
  if (dtype === "I32") return wholes(array);
  if (!FLOATS.includes(dtype))
    throw wrong("array", `holds the array ${short(name)}, which is of the unknown kind ${dtype}`);
  const reals = new Reals(dtype, bytes), numbers = reals.part(0, reals.length);
  return numbers instanceof Float32Array ? numbers : Float32Array.from(numbers);
}
