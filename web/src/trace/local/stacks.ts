/** Which layers follow each other: one stack of self-attention, or an encoder and the decoder that reads it. */
import type { LayerInfo, Tokens } from "../source";
import { TraceError } from "./traceError";

/** Numbers of layers, in the order they were computed; `source` is empty where there is one stack only. */
export interface Stacks {
  readonly source: readonly number[];
  readonly target: readonly number[];
}

type Named = Pick<LayerInfo, "name" | "kind" | "shape">;

/**
 * The decoder is what shares its path up to the first number with cross-attention, else what stands around it: the layer
 * before, if it has as many rows, and all after it. Before a pooling layer there is none.
 */
export function stacksOf(layers: readonly Named[]): Stacks {
  const numbers = layers.map((_, i) => i);
  const first = layers.findIndex((layer) => layer.kind === "cross");
  if (first < 0) return { source: [], target: numbers };
  const root = pathOf(layers[first]!.name);
  const crossing = layers.filter((layer) => layer.kind === "cross").length;
  let ours = layers.map((layer) => layer.kind === "cross" || pathOf(layer.name) === root);
  const count = ours.filter(Boolean).length;
  if (!root || count === layers.length || count === crossing) {
    const before = layers[Math.max(0, first - 1)]!.shape[2] === layers[first]!.shape[2] ? 1 : 0;
    ours = layers.map((layer, i) => i >= first - before || layer.kind === "cross");
  }
  return { source: numbers.filter((i) => !ours[i]), target: numbers.filter((i) => ours[i]) };
}

/** The path up to its first number: what all layers of one stack share. */
function pathOf(name: string): string {
  const steps = name.split(".");
  const number = steps.findIndex((step) => /^\d+$/.test(step));
  return steps.slice(0, Math.max(0, number)).join(".");
}

/** Where a layer stands in an encoder and decoder; "" where there is one stack. */
export function sidesOf(layers: readonly Named[]): readonly LayerInfo["side"][] {
  if (!layers.some((layer) => layer.kind === "cross")) return layers.map(() => "");
  const { source } = stacksOf(layers);
  return layers.map((_, i) => (source.includes(i) ? "encoder" : "decoder"));
}

/** Throws a sentence where a layer's columns are not the rows of the layer before it; gives the two lengths. */
export function mustChain(
  layers: readonly LayerInfo[], { source, target }: Stacks,
  tokens: (layer: number, which: "queries" | "keys") => Tokens | null,
): { n: number; m: number } {
  const all = [...source, ...target].map((i) => layers[i]!);
  const [first] = all;
  if (!first) throw new TraceError("The trace has no layers, so nothing flows; watch a call of the model first.", "flow.empty");
  for (const layer of all)
    if (layer.shape[0] !== first.shape[0])
      throw new TraceError(
        `${layer.name} saw a batch of ${layer.shape[0]} and ${first.name} one of ${first.shape[0]}, as windows of a ` +
          "picture do, so tokens cannot be followed from layer to layer.", "flow.windows", { layer: layer.name },
      );
  const n = layers[target[0]!]!.shape[2];
  const m = layers[target.find((i) => layers[i]!.kind === "cross") ?? -1]?.shape[3] ?? 0;
  for (const [some, length] of [[source, m], [target, n]] as const) {
    let names: string | null = null;
    for (const i of some) {
      const { name, kind, shape: [, , q, k] } = layers[i]!;
      if (q !== length || k !== (kind === "cross" ? m : length))
        throw new TraceError(
          `${name} has ${q} queries and ${k} keys, but ${length} tokens flow through its stack, so it does not ` +
            "continue the others; watch without an older cache.",
          "flow.broken", { layer: name, queries: q, keys: k, tokens: length },
        );
      if (kind === "cross") continue; // its rows may be named after what they wrote, not after what was fed
      for (const which of ["queries", "keys"] as const) {
        const shown = tokens(i, which)?.shown;
        const joined = shown ? JSON.stringify(shown) : null;
        if (joined !== null && names !== null && joined !== names)
          throw new TraceError(
            `The tokens of ${name} are not those of the layers before it (shifted windows, or another input), ` +
              "so they cannot be followed.", "flow.windows", { layer: name },
          );
        names ??= joined;
      }
    }
  }
  return { n, m };
}
