/** From which inputs a token is fed through all layers: rollout, by vectors only (arXiv 2005.00928, eq. 1). */
import type { Flow, FlowAt, LayerInfo } from "../source";
import type { Floats } from "../bytes";
import type { Pace } from "./pace";
import type { Stacks } from "./stacks";
import type { HeadMap } from "./headMap";
import { TraceError } from "./traceError";

export interface FlowOf {
  readonly layers: readonly LayerInfo[];
  readonly stacks: Stacks;
  readonly n: number;
  readonly m: number;
  readonly map: (layer: number, head: number) => HeadMap;
  readonly values: (layer: number, head: number) => { readonly v: Floats; readonly e: number } | null;
}

export async function flowOf(of: FlowOf, at: FlowAt, pace: Pace): Promise<Omit<Flow, "targetTokens" | "sourceTokens" | "error">> {
  const { layers, stacks, n, m } = of;
  const { query, residual } = at;
  if (!(query >= 0 && query < n)) throw new TraceError(`Token ${query} was asked for, but there are ${n}.`, "place.none", { place: query, count: n });
  if (!(residual >= 0 && residual <= 1))
    throw new TraceError(`The residual is ${residual}, but it is the share that passes a layer by; give 0 to 1.`);
  let now = new Float64Array(n), source = new Float64Array(m);
  now[query] = 1;
  const lines: [Float64Array, Float64Array][] = [[now, source]];
  const attended = 1 - residual;
  for (const layer of [...stacks.target].reverse()) {
    const { arrived, stayed } = await down(of, layer, now, at, pace);
    if (layers[layer]!.kind === "cross") {
      source = source.map((share, i) => share + attended * arrived[i]!);
      now = now.map((share, i) => residual * share + attended * stayed[i]!);
    } else now = now.map((share, i) => residual * share + attended * (arrived[i]! + stayed[i]!));
    lines.push([now, source]);
  }
  for (const layer of [...stacks.source].reverse()) {
    const { arrived, stayed } = await down(of, layer, source, at, pace);
    source = source.map((share, i) => residual * share + attended * (arrived[i]! + stayed[i]!));
    lines.push([now, source]);
  }
  lines.reverse();
  const stacked = (which: 0 | 1, width: number): Float32Array => {
    const shares = new Float32Array(lines.length * width);
    lines.forEach((line, i) => shares.set(line[which], i * width));
    return shares;
  };
  const names = [...stacks.source, ...stacks.target].map((i) => layers[i]!.name);
  return { lines: lines.length, layers: names, target: stacked(0, n), n, source: m ? stacked(1, m) : null, m };
}

interface FlowStep {
  readonly arrived: Float64Array; // on the other side
  readonly stayed: Float64Array; // with rows that see nothing
}

/** A row vector times the mean map of a layer; a row that sees nothing keeps what it has. */
async function down(of: FlowOf, layer: number, now: Float64Array, at: FlowAt, pace: Pace): Promise<FlowStep> {
  const { name, shape: [, heads, queries, keys] } = of.layers[layer]!;
  const arrived = new Float64Array(keys), stayed = new Float64Array(queries), line = new Float64Array(keys);
  for (let head = 0; head < heads; head++) {
    const map = of.map(layer, head);
    const norms = at.by === "values" ? normsOf(of.values(layer, head), name, keys) : null;
    for (let query = 0; query < queries; query++) {
      const there = now[query]!;
      if (there === 0) continue;
      const blind = map.stop(query) <= map.start(query);
      const first = blind ? 0 : map.start(query), stop = blind ? keys : map.stop(query); // a blind row may be even
      map.weigh(query, first, stop, line);
      let total = 0;
      for (let i = first; i < stop; i++) total += norms ? (line[i - first]! *= norms[i]!) : line[i - first]!;
      if (total === 0) stayed[query]! += there / heads;
      else {
        const share = there / total / heads;
        for (let i = first; i < stop; i++) arrived[i]! += share * line[i - first]!;
      }
      if (pace.due()) await pace.rest();
    }
  }
  return { arrived, stayed };
}

function normsOf(values: { readonly v: Floats; readonly e: number } | null, name: string, keys: number): Float64Array {
  if (!values)
    throw new TraceError(
      `${name} kept no values to weigh by; keep them (values=True), or flow by weights.`, "flow.values", { layer: name },
    );
  const { v, e } = values;
  const norms = new Float64Array(keys);
  for (let key = 0; key < keys; key++) {
    let sum = 0;
    for (let i = key * e; i < (key + 1) * e; i++) sum += v[i]! * v[i]!;
    norms[key] = Math.sqrt(sum);
  }
  return norms;
}
