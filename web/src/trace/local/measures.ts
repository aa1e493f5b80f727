/**
 * What each head does, in numbers, as src/regard/trace/numbers/measure.py says it: means over the rows that see
 * something and are no padding; padding is what no query of any head may see.
 */
import type { LayerInfo, Measures, Tokens } from "../source";
import type { Pace } from "./pace";
import { ComputedMap, type HeadMap, StoredMap } from "./headMap";

const NAMES = ["entropy", "distance", "sink", "itself", "previous", "next", "duplicate", "induction"];

interface Entry {
  readonly chained: boolean; // rows and columns are one sequence
  readonly offset: number; // row + offset is its column, ends aligned
  readonly counted: Uint8Array;
  readonly hidden: Uint8Array; // keys that nobody sees
  readonly causal: boolean; // later keys are hidden, of weights without a mask
  readonly guessed: boolean; // nothing says who may be seen
  readonly first: number;
  readonly ids: { readonly queries: readonly number[]; readonly keys: readonly number[] } | null;
  readonly special: ReadonlyMap<string, readonly number[]>;
}

/** A mean in the making. */
class Sum {
  total = 0;
  rows = 0;
  add(value: number): void {
    this.total += value;
    this.rows++;
  }
  mean(): number | null {
    return this.rows ? this.total / this.rows : null;
  }
}

export async function measuresOf(
  layer: LayerInfo, maps: (head: number) => HeadMap, queries: Tokens | null, keys: Tokens | null, pace: Pace,
): Promise<Measures> {
  const [, heads] = layer.shape;
  const entry = await entryOf(layer, maps, queries, keys, pace);
  const names = [...NAMES, ...entry.special.keys()];
  const values: Record<string, (number | null)[]> = Object.fromEntries(names.map((name) => [name, []]));
  for (let head = 0; head < heads; head++) {
    const sums = await walk(maps(head), entry, pace);
    for (const name of names) values[name]!.push(sums.get(name)?.mean() ?? null);
  }
  const notes: string[] = [];
  if (!entry.chained)
    notes.push(`rows and columns of ${layer.name} are not known to be one sequence (kind '${layer.kind}')`);
  else if (!entry.ids) notes.push(`the token ids of ${layer.name} are not known`);
  return { values, notes };
}

async function entryOf(
  layer: LayerInfo, maps: (head: number) => HeadMap, queries: Tokens | null, keys: Tokens | null, pace: Pace,
): Promise<Entry> {
  const [, heads, q, k] = layer.shape;
  const chained = layer.kind === "self", offset = k - q;
  const seen = new Uint8Array(k), line = new Float64Array(k);
  let own = false, later = false, guessed = false;
  for (let head = 0; head < heads; head++) {
    const map = maps(head);
    const blank = map instanceof StoredMap && !map.masked; // then a weight is all that tells
    guessed ||= blank;
    own ||= map instanceof ComputedMap && map.parts.length > 1; // rows that see only what follows them say nothing of padding
    for (let query = 0; query < q; query++) {
      const place = query + offset, start = map.start(query), stop = map.stop(query);
      if (blank) {
        map.weigh(query, 0, k, line);
        for (let key = 0; key < k; key++)
          if (line[key]! > 0) {
            seen[key] = 1;
            if (key > place) later = true;
            if (key === place) own = true;
          }
      } else {
        if (map.isContiguous) {
          if (stop > start) seen.fill(1, start, stop);
        } else for (let key = start; key < stop; key++) if (map.sees(query, key)) seen[key] = 1;
        if (place >= 0 && map.sees(query, place)) own = true;
      }
      if (pace.due()) await pace.rest();
    }
  }
  const hidden = seen.map((one) => 1 - one);
  const counted = new Uint8Array(q).fill(1);
  if (chained && k >= q && own) for (let query = 0; query < q; query++) counted[query] = seen[query + offset]!;
  const queryIds = queries?.ids, keyIds = keys?.ids;
  const special = new Map<string, number[]>();
  keys?.special?.forEach((is, column) => {
    if (!is || column >= k || hidden[column]) return;
    const name = `to ${keys.shown[column]!}`;
    special.set(name, [...(special.get(name) ?? []), column]);
  });
  return {
    chained, offset, counted, hidden, causal: chained && guessed && !later, guessed,
    first: Math.max(0, seen.indexOf(1)), special,
    ids: queryIds?.length === q && keyIds?.length === k && chained ? { queries: queryIds, keys: keyIds } : null,
  };
}

async function walk(map: HeadMap, entry: Entry, pace: Pace): Promise<ReadonlyMap<string, Sum>> {
  const { chained, offset, ids, first } = entry;
  const k = map.keys, line = new Float64Array(k);
  const sums = new Map<string, Sum>();
  const put = (name: string, value: number): void => {
    let sum = sums.get(name);
    if (!sum) sums.set(name, (sum = new Sum()));
    sum.add(value);
  };
  const same = ids && placesOf(ids.keys);
  for (let query = 0; query < map.queries; query++) {
    if (pace.due()) await pace.rest();
    const place = query + offset;
    map.weigh(query, 0, k, line);
    let all = 0, entropy = 0, away = 0;
    for (let key = 0; key < k; key++) {
      const weight = line[key]!;
      if (weight === 0) continue;
      all += weight;
      entropy -= weight * Math.log(weight);
      away += weight * Math.abs(place - key);
    }
    if (all === 0 || !entry.counted[query]) continue; // it sees nothing, or is padding
    const sees = (key: number): boolean =>
      key >= 0 && key < k &&
      (entry.guessed ? !entry.hidden[key] && !(entry.causal && key > place) : map.sees(query, key));
    put("entropy", entropy);
    put("sink", line[first]!);
    for (const [name, columns] of entry.special) put(name, columns.reduce((sum, column) => sum + line[column]!, 0));
    if (!chained) continue;
    put("distance", away / all);
    put("itself", line[place] ?? 0);
    if (sees(place - 1)) put("previous", line[place - 1]!);
    if (sees(place + 1)) put("next", line[place + 1]!);
    if (!ids || !same) continue;
    const alike = same.get(ids.queries[query]!) ?? [];
    const given = (keys: readonly number[]): number | null => {
      const inside = keys.filter((key) => key < k);
      return inside.some(sees) ? inside.reduce((sum, key) => sum + line[key]!, 0) : null;
    };
    const duplicate = given(alike.filter((key) => key !== place));
    if (duplicate !== null) put("duplicate", duplicate);
    const induction = given(alike.filter((key) => key < place).map((key) => key + 1));
    if (induction !== null) put("induction", induction);
  }
  return sums;
}

/** Where each token stands. */
function placesOf(ids: readonly number[]): ReadonlyMap<number, readonly number[]> {
  const places = new Map<number, number[]>();
  ids.forEach((id, place) => {
    const known = places.get(id);
    if (known) known.push(place);
    else places.set(id, [place]);
  });
  return places;
}
