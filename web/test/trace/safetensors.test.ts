/** Blobs that are whole, and blobs that are not. */
import { describe, expect, it } from "vitest";
import { readSafetensors } from "../../src/trace/safetensors";

type Header = Record<string, unknown>;

/** A blob with this header and these bytes; `shift` puts it at an odd place of its buffer. */
function blob(header: Header | string, data: ArrayBuffer | Uint8Array = new Uint8Array(), shift = 0): Uint8Array {
  const text = new TextEncoder().encode(typeof header === "string" ? header : JSON.stringify(header));
  const bytes = data instanceof Uint8Array ? data : new Uint8Array(data);
  const whole = new Uint8Array(shift + 8 + text.length + bytes.length).subarray(shift);
  new DataView(whole.buffer, shift).setBigUint64(0, BigInt(text.length), true);
  whole.set(text, 8);
  whole.set(bytes, 8 + text.length);
  return whole;
}
const one = (dtype: string, shape: number[], bytes: number): Header => ({ x: { dtype, shape, data_offsets: [0, bytes] } });

describe("a blob", () => {
  it("gives float32, int32 and bytes as they are, wherever they stand", () => {
    const floats = Float32Array.of(1.5, -2, 1e-30), whole = Int32Array.of(-1, 7);
    const data = new Uint8Array(12 + 8 + 3);
    data.set(new Uint8Array(floats.buffer));
    data.set(new Uint8Array(whole.buffer), 12);
    data.set([0, 128, 255], 20);
    const header = {
      marks: { dtype: "U8", shape: [3], data_offsets: [20, 23] }, __metadata__: { facts: "{}" },
      floats: { dtype: "F32", shape: [3, 1], data_offsets: [0, 12] }, whole: { dtype: "I32", shape: [2], data_offsets: [12, 20] },
    };
    for (const shift of [0, 1, 2, 3, 5]) {
      const { arrays, metadata } = readSafetensors(blob(header, data, shift));
      expect(arrays).toEqual({ floats, whole, marks: Uint8Array.of(0, 128, 255) });
      expect(metadata).toEqual({ facts: "{}" });
    }
  });

  it("gives wider and narrower floats as float32", () => {
    const wide = Float64Array.of(0.1, -3);
    expect(readSafetensors(blob(one("F64", [2], 16), wide.buffer)).arrays["x"]).toEqual(Float32Array.of(0.1, -3));
    const halves = Uint16Array.of(0x3c00, 0xc000, 0x0001, 0x7bff, 0x7c00, 0xfc00, 0x3555, 0x8000);
    const half = readSafetensors(blob(one("F16", [8], 16), halves.buffer)).arrays["x"];
    expect(half).toEqual(Float32Array.of(1, -2, 2 ** -24, 65504, Infinity, -Infinity, 0.333251953125, -0));
    const brain = Uint16Array.of(0x3f80, 0xc000, 0x4049);
    const found = readSafetensors(blob(one("BF16", [3], 6), brain.buffer)).arrays["x"];
    expect(found).toEqual(Float32Array.of(1, -2, 3.140625));
    expect((readSafetensors(blob(one("F16", [1], 2), Uint16Array.of(0x7e00).buffer)).arrays["x"] as Float32Array)[0]).toBeNaN();
  });

  it("may hold nothing, and names that objects have of their own", () => {
    expect(readSafetensors(blob({}))).toEqual({ metadata: {}, arrays: {} });
    const odd = readSafetensors(blob('{"__proto__":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', Uint8Array.of(9)));
    expect(Object.keys(odd.arrays)).toEqual(["__proto__"]);
    expect(Object.getPrototypeOf(odd.arrays)).toBe(Object.prototype);
  });
});

const cut = blob(one("U8", [4], 4), Uint8Array.of(1, 2, 3, 4));
const huge = blob("{}");
new DataView(huge.buffer).setBigUint64(0, 2n ** 63n, true);
const BAD: Record<string, [Uint8Array, RegExp]> = {
  "too short": [new Uint8Array(7), /holds 7 bytes/],
  "a header longer than any": [huge, /does not begin like safetensors/],
  "a header beyond the end": [blob("{}").subarray(0, 9), /cut off: its header/],
  "no JSON": [blob("{"), /header that cannot be read/],
  "no UTF-8": [blob("{ }").map((byte, i) => (i === 9 ? 0xff : byte)), /header that cannot be read/],
  "a list": [blob("[]"), /does not begin like safetensors/],
  "metadata that are numbers": [blob({ __metadata__: { a: 1 } }), /metadata/],
  "an unknown kind": [blob(one("I64", [1], 8), new Uint8Array(8)), /unknown kind I64/],
  "a kind that every object has": [blob(one("constructor", [1], 8), new Uint8Array(8)), /unknown kind constructor/],
  "no entry": [blob({ x: 3 }), /x, which is not described/],
  "a negative side": [blob(one("U8", [-4], 4), new Uint8Array(4)), /no shape/],
  "half a place": [blob({ x: { dtype: "U8", shape: [1], data_offsets: [0] } }, new Uint8Array(1)), /not say where/],
  "another size": [blob(one("F32", [2], 4), new Uint8Array(4)), /has 4 bytes, but its shape needs 8/],
  "a gap": [blob({ x: { dtype: "U8", shape: [1], data_offsets: [1, 2] } }, new Uint8Array(2)), /leave a gap/],
  "bytes that are missing": [cut.subarray(0, cut.length - 1), /cut off: x would end/],
  "bytes that are left": [blob(one("U8", [1], 1), new Uint8Array(2)), /1 bytes at its end/],
};

describe("a blob that is not whole", () => {
  for (const [name, [bytes, sentence]] of Object.entries(BAD))
    it(`says so in one sentence: ${name}`, () => {
      expect(() => readSafetensors(bytes)).toThrow(sentence);
    });
});
