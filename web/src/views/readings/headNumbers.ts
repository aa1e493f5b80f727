/** What one head does with a text, counted weight by weight: where it may look, where it looks, how far, how widely. */
import { type HeadAt, type Source, TILE } from "../../trace/source";

export interface HeadNumbers {
  readonly mayLook: number; // share of the map
  readonly back: number; // share of the weight
  readonly itself: number;
  readonly ahead: number;
  readonly distance: number; // tokens, mean over the rows
  readonly entropy: number; // bits, mean over the rows
}

export const MOST = 1024; // tokens up to which a head is counted

/** The numbers of a head; null where it is too large to be read whole. Self-attention: ends are aligned. */
export async function headNumbers(source: Source, at: HeadAt, signal?: AbortSignal): Promise<HeadNumbers | null> {
  const [, , queries, keys] = source.info.layers[at.layer]?.shape ?? [0, 0, 0, 0];
  if (queries === 0 || keys === 0 || Math.max(queries, keys) > MOST) return null;
  const counter = new WeightCounter(queries, keys);
  for (let row = 0; row * TILE < queries; row++)
    for (let column = 0; column * TILE < keys; column++) {
      const tile = await source.tile({ ...at, level: 0, row, column }, false, signal);
      tile.max.forEach((weight, cell) => {
        const query = row * TILE + Math.floor(cell / tile.columns), key = column * TILE + (cell % tile.columns);
        counter.add(query, key, weight, tile.allowed[cell] !== 0);
      });
    }
  return counter.numbers();
}

class WeightCounter {
  private open = 0;
  private readonly weight = { back: 0, itself: 0, ahead: 0 };
  private distance = 0;
  private entropy = 0;

  constructor(private readonly queries: number, private readonly keys: number) {}

  add(query: number, key: number, weight: number, isAllowed: boolean): void {
    if (!isAllowed) return;
    const offset = key - (query + this.keys - this.queries);
    this.open++;
    this.weight[offset < 0 ? "back" : offset > 0 ? "ahead" : "itself"] += weight;
    this.distance += weight * Math.abs(offset);
    if (weight > 0) this.entropy -= weight * Math.log2(weight);
  }

  numbers(): HeadNumbers {
    const { queries, keys } = this, { back, itself, ahead } = this.weight, total = back + itself + ahead || 1;
    return {
      mayLook: this.open / (queries * keys), back: back / total, itself: itself / total, ahead: ahead / total,
      distance: this.distance / queries, entropy: this.entropy / queries,
    };
  }
}
