/** Sources with more than plain attention: biases, sinks, stored weights, pictures, trainings. Plain loops, float64. */
import type { Server } from "../../src/hosts/server";
import type { TrainingCard } from "../../src/trace/messages";
import type { HeadAt, Numbers, Row, Source } from "../../src/trace/source";
import type { ShownPicture } from "../../src/trace/messages";
import { Fake, fake, fakeLayers, named, numbersFrom } from "../fake";

export interface Extras {
  readonly bias?: boolean; readonly softcap?: boolean; readonly sink?: boolean; readonly stored?: boolean;
  readonly kernel?: boolean; readonly values?: boolean;
}

/** A fake whose scores are capped, biased and share with a sink; or whose weights were stored. */
export function dressed(
  plain: Fake, { bias = false, softcap = false, sink = false, stored = false, kernel = false, values = true }: Extras,
): Source {
  const cap = 1.5, drain = 0.4;
  const biasOf = (i: number, j: number): number => (bias ? -0.1 * Math.abs(i - j) : 0);
  const scoresOf = (at: HeadAt, i: number): number[] =>
    plain.scoresOf(at, i).map((s, j) => (softcap ? cap * Math.tanh(s / cap) : s) + biasOf(i, j));
  const open = async (at: HeadAt, i: number): Promise<Uint8Array> => (await plain.row(at, i)).allowed;
  const full = async (at: HeadAt, i: number): Promise<{ weights: number[]; highest: number; total: number }> => {
    const allowed = await open(at, i), scores = scoresOf(at, i);
    const highest = Math.max(...scores.filter((_, j) => allowed[j]));
    const powers = scores.map((s, j) => (allowed[j] ? Math.exp(s - highest) : 0));
    const total = powers.reduce((a, b) => a + b, 0) + (sink ? Math.exp(drain - highest) : 0);
    return { weights: powers.map((power) => power / total), highest, total };
  };
  const row = async (at: HeadAt, i: number): Promise<Row> => ({
    weights: Float32Array.from(
      (await full(at, i)).weights
    ), scores: stored ? null : Float32Array.from(scoresOf(at, i)), allowed: await open(at, i),
  });
  const numbers = async (at: HeadAt, query: number, key: number): Promise<Numbers> => {
    const base = await plain.numbers(at, query, key);
    const rows = [...base.rows], columns = [...base.columns], [, , , m] = plain.info.layers[at.layer]!.shape;
    const made = await Promise.all(rows.map((i) => full(at, i)));
    const every = await plain.numbers(at, query, key);
    const wholeV = await Promise.all(Array.from({ length: m }, async (_, j) => (await plain.numbers(at, query, j)).v!));
    const placeOf = await Promise.all(
      Array.from({ length: m }, async (_, j) => (await plain.numbers(at, query, j)).columns.indexOf(j))
    );
    const v = (j: number, c: number): number => wholeV[j]![placeOf[j]! * every.e + c]!;
    const mix = Float32Array.from(
      made.flatMap(
        ({ weights }) => Array.from({ length: base.e }, (_, c) => weights.reduce((sum, w, j) => sum + w * v(j, c), 0))
      )
    );
    return {
      ...base,
      q: stored ? null : base.q, k: stored ? null : base.k, dot: stored ? null : base.dot,
      bias: bias && !stored ? Float32Array.from(rows.flatMap((i) => columns.map((j) => biasOf(i, j)))) : null,
      scores: stored ? null : Float32Array.from(rows.flatMap((i) => columns.map((j) => scoresOf(at, i)[j]!))),
      weights: Float32Array.from(made.flatMap(({ weights }) => columns.map((j) => weights[j]!))),
      rest: Float32Array.from(
        made, ({ weights }) => weights.reduce((sum, w, j) => sum + (columns.includes(j) ? 0 : w), 0),
      ),
      highest: stored ? null : Float32Array.from(
        made, (one) => one.highest,
      ), total: stored ? null : Float32Array.from(made, (one) => one.total),
      sink: sink && !stored ? Float32Array.from(rows, () => drain) : null,
      v: values ? base.v : null, mix: values ? mix : null,
      kernel: kernel && values ? mix.slice(
        rows.indexOf(query) * base.e, (rows.indexOf(query) + 1) * base.e,
      ).map((x, i) => x + (i === 1 ? 3e-7 : 0)) : null,
      softcap: softcap && !stored ? cap : null,
    };
  };
  return new Proxy(plain, {
    get: (target, name) => {
      if (name === "row") return row;
      if (name === "numbers") return numbers;
      const held: unknown = Reflect.get(target, name);
      return typeof held === "function" ? (held.bind(target) as unknown) : held;
    },
  });
}

/** A model that sees: `special` tokens, then the patches of a picture. */
export function pictured(grid: readonly [number, number], special: number, picture: ShownPicture | null = null): Fake {
  const words = [
    ...Array.from({ length: special }, (_, i) => (i === 0 ? "[CLS]" : `[REG${i}]`)),
    ...Array.from({ length: grid[0] * grid[1] }, (_, i) => `patch ${i}`)
  ];
  const marks = words.map((_, i) => i < special);
  return new Fake(fakeLayers(words), [named(words, { grid, special: marks })], { picture });
}

/** A model that writes about a picture: queries are words, keys are patches. */
export function crossing(
  words: readonly string[], grid: readonly [number, number], picture: ShownPicture | null = null,
): Fake {
  const patches = Array.from({ length: grid[0] * grid[1] }, (_, i) => `patch ${i}`);
  const draw = numbersFrom(3), vectors = (n: number): number[][] => Array.from(
    { length: n }, () => Array.from({ length: 5 }, () => 2 * draw()),
  );
  const layers = fakeLayers(patches).map((layer) => ({
    ...layer,
    info: {
      ...layer.info, kind: "cross" as const, shape: [1, 4, words.length, patches.length] as const, queries: [0],
      keys: [1],
    },
    heads: layer.heads.map((head) => ({ ...head, q: vectors(words.length) })),
  }));
  return new Fake(layers, [named(words), named(patches, { grid })], { picture });
}

/** A server with one training of four steps, of which the score is known. */
export function trainings(words: readonly string[], cards: readonly TrainingCard[] = CARDS): Server {
  const none = (): Promise<never> => Promise.reject(new Error("not here"));
  return {
    models: async () => [], traces: async () => [], trainings: async () => cards,
    open: none, upload: none, rename: none, forget: none, run: none, edit: none, page: none,
    openTraining: async (id, step, example) => fake(
      words, { layers: 2, heads: 3, causal: step > 500, d: 4 },
      { id: `${id} ${step} ${example}`, name: `${id} ${step}` },
    ),
  };
}

/** A run of which nothing is known but its name. */
const BARE: TrainingCard = {
  id: "", name: "", task: "translate", state: "stopped", step: 0, total: 2500, best: null, steps: [], examples: 0,
  losses: [], scores: {}, speeds: [], seconds: 0, ends: null, settings: {},
};

export const trainingCard = (more: Partial<TrainingCard>): TrainingCard => ({ ...BARE, ...more });

export const CARDS: readonly TrainingCard[] = [
  trainingCard({
    id: "one", name: "en→zh, small", state: "running", step: 2050, steps: [0, 100, 500, 1000, 2000], examples: 3,
    best: { score: "bleu", value: 27.2, step: 2000 },
    scores: {
      loss: [[0, 6.2], [100, 4.1], [500, 2.2], [1000, 1.4], [2000, 1.1]],
      bleu: [[0, 0], [100, 2.5], [500, 14], [1000, 24.5], [2000, 27.2]],
    },
    losses: [[1, 7.5], [50, 5.5], [500, 2.5], [2000, 0.9], [2050, 0.8]],
    speeds: [[1, 900], [500, 2100], [2050, 2134.7]], seconds: 4000, ends: 1_800_000_000,
    settings: { lr: "0.001", width: "128", heads: "4" },
  }),
  trainingCard({ id: "two", name: "induction", task: "induction", step: 20, total: 20, steps: [10, 20], examples: 1 }),
  trainingCard({
    id: "three", name: "no attention", state: "finished", step: 2500, seconds: 3725, best: { score: "bleu", value: 9, step: 2500 },
    losses: [[1, 7.9], [2500, 3.3]], scores: { bleu: [[500, 5], [2500, 9]] }, speeds: [[2500, 5000]],
    settings: { lr: "0.001", width: "64", cell: "gru" },
  }),
];
