/** Files that are no whole trace: each is told in one sentence, none is believed. */
import { describe, expect, it } from "vitest";
import { TraceError, openLocalSource } from "../../../src/trace/local/source";
import { bfloat16, float16Table } from "../../../src/trace/float16";
import { unpack } from "../../../src/trace/local/unpack";
import { bytesOf } from "./read";

const sound = bytesOf("pair.trace");
const length = Number(new DataView(sound.buffer, sound.byteOffset).getBigUint64(0, true));
type Header = Record<string, { dtype: string; shape: number[]; data_offsets: number[] }> & { __metadata__: { regard: string } };
const headerOf = (): Header => JSON.parse(new TextDecoder().decode(sound.subarray(8, 8 + length))) as Header;

/** The file with another header. */
function rewritten(change: (header: Header) => void): Uint8Array {
  const header = headerOf();
  change(header);
  const text = new TextEncoder().encode(JSON.stringify(header));
  const found = new Uint8Array(8 + text.length + sound.length - 8 - length);
  new DataView(found.buffer).setBigUint64(0, BigInt(text.length), true);
  found.set(text, 8);
  found.set(sound.subarray(8 + length), 8 + text.length);
  return found;
}

interface Words {
  version: number;
  tokens: { shown: string[] }[];
  runs: { layers: Record<string, unknown>[] }[];
}
const said = (change: (words: Words) => void): Uint8Array =>
  rewritten((header) => {
    const words = JSON.parse(header.__metadata__.regard) as Words;
    change(words);
    header.__metadata__.regard = JSON.stringify(words);
  });
const layer = (words: Words): Record<string, unknown> => words.runs[0]!.layers[0]!;
const part = (words: Words): Record<string, unknown> => (layer(words)["parts"] as Record<string, unknown>[])[0]!;

describe("a file is refused in one sentence", () => {
  it.each<[string, () => Uint8Array, RegExp]>([
    ["empty", () => new Uint8Array(), /0 bytes, too few/],
    ["never finished", () => new Uint8Array(100), /never finished/],
    ["no safetensors", () => new TextEncoder().encode("hello, this is a text file"), /no trace file/],
    ["cut in its header", () => sound.slice(0, 100), /cut off: its header/],
    ["cut in its numbers", () => sound.slice(0, sound.length - 9), /cut off|would end/],
    ["longer than it says", () => Uint8Array.from([...sound, 1, 2]), /2 bytes at its end/],
    ["with a header of other bytes", () => sound.map((byte, i) => (i === 20 ? 0xff : byte)), /header that cannot be read/],
    ["without a manifest", () => rewritten((header) => Reflect.deleteProperty(header, "__metadata__")), /has no manifest/],
    ["with a manifest that is no JSON", () => rewritten((header) => (header.__metadata__.regard = "{")), /manifest that cannot be read/],
    ["without a version", () => said((words) => Reflect.deleteProperty(words, "version")), /without a version/],
    ["of a newer version", () => said((words) => (words.version = 3)), /version 3, but this explorer reads version 2; open it with a newer/],
    ["of an older version", () => said((words) => (words.version = 0)), /write it again with this one/],
    ["with an unknown word", () => said((words) => (layer(words)["more"] = 1)), /no such word/],
    ["with a text for a number", () => said((words) => (part(words)["scale"] = "1")), /a number was wanted/],
    ["with half a layer", () => said((words) => Reflect.deleteProperty(layer(words), "shape")), /runs\.0\.layers\.0\.shape/],
    ["with an unknown weigher", () => said((words) => (part(words)["weigh"] = "max")), /one of softmax, even/],
    ["with an array that is missing", () => said((words) => (part(words)["q"] = "nowhere")), /there is no array nowhere/],
    ["with a prototype for a name", () => said((words) => (part(words)["q"] = "__proto__")), /there is no array __proto__/],
    ["with rows that are missing", () => said((words) => (part(words)["rows"] = [0, 3])), /is not what belongs there|its parts have/],
    ["with a huge map", () => said((words) => (layer(words)["shape"] = [1, 4, 4, 2 ** 40])), /does not come from a file of this size/],
    ["with other tokens", () => said((words) => words.tokens[0]!.shown.push("x")), /its tokens are not|another length/],
    ["with a mask beyond its keys", () => {
      const found = sound.slice();
      const name = Object.keys(headerOf()).find((one) => one.endsWith("mask/stop"))!;
      new DataView(found.buffer).setInt32(8 + length + headerOf()[name]!.data_offsets[0]!, 99, true);
      return found;
    }, /does not lie within the/],
    ["with arrays that overlap", () => rewritten((header) => {
      const [first] = Object.keys(header).filter((name) => name.endsWith("/k")) as [string];
      header[first]!.data_offsets = header[first]!.data_offsets.map((at) => at + 8);
    }), /overlap or leave a gap|would end/],
  ])("%s", (_, bytes, sentence) => {
    const open = (): unknown => openLocalSource(bytes());
    expect(open).toThrow(TraceError);
    expect(open).toThrow(sentence);
    expect(open).toThrow(expect.objectContaining({ code: expect.stringMatching(/^file\.\w+$/) }));
  });

  it("and a newer one is told apart", () => {
    try {
      openLocalSource(said((words) => (words.version = 7)));
    } catch (error) {
      expect(error).toMatchObject({ code: "file.newer", about: { version: 7, known: 2 } });
    }
  });
});

describe("a file that is sound", () => {
  it("may stand anywhere in memory", async () => {
    const shifted = new Uint8Array(sound.length + 3);
    shifted.set(sound, 3);
    const at = { layer: 0, batch: 0, head: 1 };
    expect(await openLocalSource(shifted.subarray(3)).row(at, 2)).toEqual(await openLocalSource(sound).row(at, 2));
    expect(await openLocalSource(sound.slice().buffer).row(at, 2)).toEqual(await openLocalSource(sound).row(at, 2));
  });

  it.each<[string, (source: ReturnType<typeof openLocalSource>) => Promise<unknown>]>([
    ["Layer 9", (s) => s.row({ layer: 9, batch: 0, head: 0 }, 0)],
    ["entry 1", (s) => s.row({ layer: 0, batch: 1, head: 0 }, 0)],
    ["head 4", (s) => s.row({ layer: 0, batch: 0, head: 4 }, 0)],
    ["Query 4", (s) => s.row({ layer: 0, batch: 0, head: 0 }, 4)],
    ["Query -1", (s) => s.numbers({ layer: 0, batch: 0, head: 0 }, -1, 0)],
    ["Key 0.5", (s) => s.column({ layer: 0, batch: 0, head: 0 }, 0.5)],
    ["no tile", (s) => s.tile({ layer: 0, batch: 0, head: 0, level: 99, row: 0, column: 0 }, false)],
  ])("refuses what it does not have: %s", async (sentence, ask) => {
    await expect(ask(openLocalSource(sound))).rejects.toThrow(sentence);
  });
});

describe("what a page holds", () => {
  const text = new TextDecoder().decode(bytesOf("pair.packed"));
  it("is the file, byte by byte", async () => {
    expect(await unpack(text, sound.length)).toEqual(sound);
  });

  it.each([["cut", text.slice(0, 4000)], ["cut within a letter", text.slice(0, 4001)], ["no base64", "<script>"], ["empty", ""],
    ["changed", text.slice(0, 2000) + (text[2000] === "A" ? "B" : "A") + text.slice(2001)]])("is told where it is %s", async (_, some) => {
    await expect(unpack(some, sound.length)).rejects.toThrow(TraceError);
  });
});

describe("numbers of 16 bits", () => {
  it("are exact", () => {
    const table = float16Table();
    expect([table[0x3c00], table[0xc000], table[0x7bff], table[0x0001], table[0x7c00], table[0x3555]]).toEqual(
      [1, -2, 65504, 2 ** -24, Infinity, 0.333251953125]);
    expect([table[0x7e00], table[0x8000]]).toEqual([NaN, -0]);
    expect([bfloat16(0x3f80), bfloat16(0xc040), bfloat16(0x0080)]).toEqual([1, -3, 2 ** -126]);
  });
});
