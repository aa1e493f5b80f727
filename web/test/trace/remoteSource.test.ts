/** What Python answered, read again; and answers that do not fit. The fixture is written by tests/views/explorer/answer. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type Answer, type Ask, openRemoteSource, readAnswer } from "../../src/trace/remoteSource";
import type { Source, TraceInfo } from "../../src/trace/source";

interface Words {
  readonly info: TraceInfo;
  readonly asks: readonly { readonly what: string; readonly about: object; readonly start: number; readonly stop: number }[];
  readonly weights: readonly (readonly number[])[];
}
const folder = `${import.meta.dirname}/../fixtures`;
const words = JSON.parse(readFileSync(`${folder}/answers.json`, "utf-8")) as Words;
const data = readFileSync(`${folder}/answers.bin`);

/** Whoever knows the answers of the fixture; keys of `about` may stand in any order, but none may be missing. */
const known: Ask = async (what, about) => {
  const sorted = (given: object): string => JSON.stringify(Object.entries(given).sort());
  const found = words.asks.find((one) => one.what === what && sorted(one.about) === sorted(about));
  if (!found) throw new Error(`nobody knows ${what} ${JSON.stringify(about)}`);
  return readAnswer(new Uint8Array(data).slice(found.start, found.stop).buffer);
};
const source = openRemoteSource(known, words.info);
const head = { layer: 0, batch: 0, head: 1 };
const n = 18;
const truth = words.weights;

function near(found: ArrayLike<number>, wanted: readonly number[]): void {
  expect(found.length).toBe(wanted.length);
  wanted.forEach((value, i) => expect(Math.abs(found[i]! - value)).toBeLessThan(1e-6));
}

describe("what Python answered", () => {
  it("has tokens as they are, half surrogates included", () => {
    expect(source.info.tokens[0]!.shown.slice(0, 4)).toEqual(["</script>", "猫", "\ud83d", "\u202e"]);
    expect(source.info.layers.map((layer) => [layer.how, layer.scores, layer.values])).toEqual([
      ["computed", true, true], ["stored", false, false],
    ]);
  });

  it("is a tile of single weights, and one of 4 × 4", async () => {
    const fine = await source.tile({ ...head, level: 0, row: 0, column: 0 }, false);
    expect([fine.rows, fine.columns, fine.sampled]).toEqual([n, n, 0]);
    near(fine.max, truth.flat());
    near(fine.mean, truth.flat());
    expect([...fine.allowed]).toEqual(truth.flatMap((row, i) => row.map((_, j) => (j <= i ? 255 : 0))));
    const rough = await source.tile({ ...head, level: 2, row: 0, column: 0 }, false);
    expect([rough.rows, rough.columns]).toEqual([5, 5]);
    near(rough.max.subarray(5, 7), [0, 4].map((first) => Math.max(...truth.slice(4, 8).flatMap((row) => row.slice(first, first + 4)))));
    const first = await source.tile({ ...head, level: 2, row: 0, column: 0 }, true);
    expect(first.sampled).toBe(4);
    near(first.max.subarray(5, 7), [0, 4].map((at) => Math.max(...truth[6]!.slice(at, at + 4))));
  });

  it("is a row with scores, one without, and a column", async () => {
    const row = await source.row(head, 11);
    near(row.weights, truth[11]!);
    expect(row.scores!.length).toBe(n);
    expect([...row.allowed]).toEqual(Array.from({ length: n }, (_, key) => Number(key <= 11)));
    const stored = await source.row({ ...head, layer: 1 }, 11);
    expect(stored.scores).toBeNull();
    near((await source.column(head, 3)).weights, truth.map((line) => line[3]!));
  });

  it("is the strongest keys, thumbnails, and what is hidden", async () => {
    const top = await source.top(head, 1, 5, 4);
    expect(top.keys[0]).toBe(truth[1]!.indexOf(Math.max(...truth[1]!)));
    expect([...top.keys.subarray(2, 4)]).toEqual([-1, -1]);
    const thumbs = await source.thumbs(0, 0, 8);
    expect([thumbs.heads, thumbs.rows, thumbs.columns, thumbs.sampled]).toEqual([2, 5, 5, 0]);
    near(thumbs.max.subarray(25), [...(await source.tile({ ...head, level: 2, row: 0, column: 0 }, false)).max]);
    const { blind, unseen } = await source.hidden(head);
    expect([...blind, ...unseen].some(Boolean)).toBe(false);
  });

  it("is measures, a proof and the flow", async () => {
    const measures = await source.measures(0, 0);
    const entropy = truth.map((row) => -row.reduce((sum, w) => sum + (w > 0 ? w * Math.log(w) : 0), 0));
    expect(measures.values["entropy"]![1]).toBeCloseTo(entropy.reduce((a, b) => a + b, 0) / n, 5);
    const proof = await source.proof(0);
    expect(proof.status).toBe("verified");
    expect(proof.output).toBeLessThan(64);
    expect(proof.ulp).toBe(2 ** -23); // the model computed in float32
    const flow = await source.flow({ query: 11, batch: 0, residual: 0.5, by: "weights" });
    expect([flow.lines, flow.n, flow.m, flow.source, flow.targetTokens, flow.sourceTokens]).toEqual([3, n, 0, null, 0, -1]);
    expect(flow.layers).toEqual(["blocks.0", "blocks.1"]);
    expect(flow.error).toBe(0);
    expect([...flow.target.subarray(2 * n)]).toEqual(Array.from({ length: n }, (_, i) => Number(i === 11)));
  });

  it("is every number of a computation", async () => {
    const found = await source.numbers(head, 11, 3);
    expect([found.d, found.e, found.rows.length, found.columns.length]).toEqual([3, 4, n, n]);
    near(found.weights, truth.flat());
    const score = found.dot![11 * n + 3]! * found.scale;
    expect(found.scores![11 * n + 3]).toBeCloseTo(score, 5);
    expect(Math.exp(score - found.highest![11]!) / found.total![11]!).toBeCloseTo(truth[11]![3]!, 5);
    near(found.kernel!, [...found.mix!.subarray(11 * 4, 12 * 4)]);
    const stored = await source.numbers({ ...head, layer: 1 }, 11, 3);
    expect([stored.q, stored.dot, stored.scores, stored.highest, stored.mix, stored.sink]).toEqual(Array(6).fill(null));
  });
});

/** A source that gets this answer, whatever it asks. */
const fooled = (change: (answer: { fields: Record<string, unknown>; arrays: Record<string, unknown> }) => void): Source =>
  openRemoteSource(async (what, about) => {
    const { fields, arrays } = await known(what, about);
    const other = { fields: { ...fields }, arrays: { ...arrays } as Record<string, unknown> };
    change(other);
    return other as Answer;
  }, words.info);
const tile = (from: Source): Promise<unknown> => from.tile({ ...head, level: 0, row: 0, column: 0 }, false);

describe("an answer that does not fit", () => {
  it("is refused in one sentence", async () => {
    await expect(tile(fooled(({ fields }) => (fields["rows"] = 17)))).rejects.toThrow("rows is 17 where 18 was wanted");
    await expect(tile(fooled(({ fields }) => (fields["sampled"] = -1)))).rejects.toThrow("sampled is no count");
    await expect(tile(fooled(({ arrays }) => delete arrays["mean"]))).rejects.toThrow("mean is missing");
    await expect(tile(fooled(({ arrays }) => (arrays["max"] = new Uint8Array(n * n))))).rejects.toThrow("max is missing");
    await expect(tile(fooled(({ arrays }) => (arrays["max"] = new Float32Array(5))))).rejects.toThrow("max has 5 numbers where 324");
    const row = fooled(({ arrays }) => (arrays["scores"] = new Float32Array(2))).row(head, 11);
    await expect(row).rejects.toThrow("The answer for row does not fit: scores has 2 numbers where 18 were wanted.");
    await expect(fooled(({ fields }) => (fields["status"] = "maybe")).proof(0)).rejects.toThrow('status is "maybe"');
    await expect(fooled(({ fields }) => (fields["notes"] = [1])).measures(0, 0)).rejects.toThrow("notes are no texts");
    await expect(fooled(({ fields }) => (fields["values"] = { entropy: [1] })).measures(0, 0)).rejects.toThrow("entropy has no 2 numbers");
    await expect(fooled(({ fields }) => (fields["values"] = null)).measures(0, 0)).rejects.toThrow("values are missing");
    await expect(source.row({ ...head, layer: 7 }, 0)).rejects.toThrow("Layer 7 was asked for, but the run has 2");
  });

  it("tells what it is, or is refused", () => {
    expect(() => readAnswer(new Uint8Array(3))).toThrow("too few");
    const text = new TextEncoder().encode('{"__metadata__":{"facts":"[1]"}}');
    const bytes = new Uint8Array(8 + text.length);
    bytes[0] = text.length;
    bytes.set(text, 8);
    expect(() => readAnswer(bytes)).toThrow("does not tell what it is");
  });
});

describe("questions at one time", () => {
  /** A way to ask whose answers wait, and what was asked of it. */
  function slow() {
    const asked: { what: string; signal: AbortSignal; answer: () => void; fail: (error: Error) => void }[] = [];
    const ask: Ask = (what, about, signal) =>
      new Promise((answered, failed) => {
        asked.push({ what, signal: signal!, answer: () => void known(what, about).then(answered, failed), fail: failed });
      });
    return { asked, from: openRemoteSource(ask, words.info) };
  }

  it("are one where they are equal, and asked again afterwards", async () => {
    const { asked, from } = slow();
    const both = [from.row(head, 11), from.row(head, 11)];
    const other = from.column(head, 3);
    await Promise.resolve();
    expect(asked.map(({ what }) => what)).toEqual(["row", "column"]);
    asked.forEach(({ answer }) => answer());
    const [one, two] = await Promise.all(both);
    expect(one!.weights).toBe(two!.weights);
    await other;
    const again = from.row(head, 11);
    await Promise.resolve();
    expect(asked.length).toBe(3);
    asked[2]!.answer();
    await again;
  });

  it("are called off alone, and for all when nobody waits any more", async () => {
    const { asked, from } = slow();
    const first = new AbortController(), second = new AbortController();
    const one = from.row(head, 11, first.signal), two = from.row(head, 11, second.signal);
    await Promise.resolve();
    first.abort();
    await expect(one).rejects.toMatchObject({ name: "AbortError" });
    expect(asked[0]!.signal.aborted).toBe(false);
    second.abort();
    await expect(two).rejects.toMatchObject({ name: "AbortError" });
    expect(asked[0]!.signal.aborted).toBe(true);
    const three = from.row(head, 11);
    await Promise.resolve();
    expect(asked.length).toBe(2);
    asked[1]!.answer();
    expect((await three).weights.length).toBe(n);
    await expect(from.row(head, 11, first.signal)).rejects.toMatchObject({ name: "AbortError" });
    expect(asked.length).toBe(2);
  });

  it("that fail, fail for all who asked", async () => {
    const { asked, from } = slow();
    const both = [from.row(head, 11), from.row(head, 11)];
    await Promise.resolve();
    asked[0]!.fail(new Error("The kernel is gone."));
    for (const one of both) await expect(one).rejects.toThrow("The kernel is gone.");
  });
});
