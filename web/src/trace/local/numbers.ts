/** The whole computation of some rows and columns, number by number. */
import type { Numbers } from "../source";
import type { Floats } from "../bytes";
import { visibleMarks, strongest } from "./rows";
import { ComputedMap, type HeadMap } from "./headMap";

const SMALL = 1024; // weights of a map that is shown whole
const MANY = 10; // strongest columns of a larger one

/** The values of a head, keys × e, and what the kernel gave for a row, where these are known. */
export interface Values {
  readonly v: Floats | null;
  readonly e: number;
  readonly kernel: (query: number) => Float32Array | null;
}

export function numbersOf(map: HeadMap, query: number, key: number, { v, e, kernel }: Values): Numbers {
  const whole = map.queries * map.keys <= SMALL;
  const rows = whole ? Array.from({ length: map.queries }, (_, i) => i) : [query];
  const columns = whole ? Array.from({ length: map.keys }, (_, j) => j) : chooseKeys(map, query, key);
  const r = rows.length, c = columns.length;
  const computed = map instanceof ComputedMap ? map : null;
  const part = computed ? computed.part(query) : null;
  const grid = (): Float32Array => new Float32Array(r * c);
  const weights = grid(), allowed = new Uint8Array(r * c), rest = new Float32Array(r);
  const dot = computed && grid(), scores = computed && grid();
  const bias = computed && computed.parts.some((one) => one.bias) ? grid() : null;
  const highest = computed && new Float32Array(r), total = computed && new Float32Array(r);
  const sink = computed && computed.parts.some((one) => one.sink) ? new Float32Array(r) : null;
  const mix = v && new Float32Array(r * e);
  const line = new Float64Array(map.keys), raw = new Float64Array(map.keys);
  rows.forEach((row, i) => {
    const seen = visibleMarks(map, row);
    map.weigh(row, 0, map.keys, line);
    const added = v && new Float64Array(e);
    let all = 0;
    for (let j = 0; j < map.keys; j++) {
      const weight = line[j]!;
      all += weight;
      if (added && weight !== 0) for (let n = 0; n < e; n++) added[n]! += weight * v[j * e + n]!;
    }
    if (mix && added) mix.set(added, i * e);
    columns.forEach((column, j) => {
      weights[i * c + j] = line[column]!;
      allowed[i * c + j] = seen[column]!;
      all -= line[column]!;
    });
    rest[i] = c === map.keys ? 0 : Math.max(0, all);
    if (!computed || !dot || !scores || !highest || !total) return;
    const own = computed.part(row);
    computed.scores(row, 0, map.keys, line);
    raw.fill(NaN);
    computed.dot(row, own.left, own.right, raw.subarray(own.left));
    let top = -Infinity, sum = 0;
    for (let j = 0; j < map.keys; j++) if (seen[j] && line[j]! > top) top = line[j]!;
    for (let j = 0; j < map.keys; j++) if (seen[j] && top > -Infinity) sum += Math.exp(line[j]! - top);
    if (sink) sink[i] = computed.sink(row);
    highest[i] = top;
    total[i] = top > -Infinity ? sum + Math.exp(computed.sink(row) - top) : 0;
    columns.forEach((column, j) => {
      dot[i * c + j] = raw[column]!;
      scores[i * c + j] = line[column]!;
      if (bias) bias[i * c + j] = column >= own.left && column < own.right ? computed.bias(row, column) : NaN;
    });
  });
  const d = part?.d ?? 0;
  return {
    rows: Int32Array.from(rows), columns: Int32Array.from(columns),
    q: computed && gatherRows(rows, d, (row) => [computed.part(row).q, row - computed.part(row).first]),
    k: computed && part && gatherRows(columns, d, (column) =>
      column >= part.left && column < part.right ? [part.k, column - part.left] : null),
    v: v && gatherRows(columns, e, (column) => [v, column]),
    dot, bias, scores, allowed, weights, rest, highest, total, sink, mix, kernel: kernel(query),
    scale: part?.scale ?? 1, softcap: part?.softcap ?? null, d, e: v ? e : 0,
  };
}

/** The key in hand and the strongest, in rising order. */
function chooseKeys(map: HeadMap, query: number, key: number): readonly number[] {
  const line = new Float64Array(map.keys);
  if (map.hasScores) map.scores(query, 0, map.keys, line);
  else map.weigh(query, 0, map.keys, line);
  const start = map.start(query);
  const best = strongest(map, query, start, map.stop(query), line.subarray(start), MANY);
  return [...new Set([...best, key])].sort((a, b) => a - b);
}

/** Some lines of matrices, one below the other; NaN where there is none. */
function gatherRows(
  lines: readonly number[], width: number, of: (line: number) => readonly [Floats, number] | null,
): Float32Array {
  const rows = new Float32Array(lines.length * width);
  lines.forEach((line, i) => {
    const place = of(line);
    if (place) rows.set(place[0].subarray(place[1] * width, (place[1] + 1) * width), i * width);
    else rows.fill(NaN, i * width, (i + 1) * width);
  });
  return rows;
}
