/** B − A as tiles of a map. Weights are subtracted one by one where that can be; where not, means are. */
import { type HeadAt, type Source, TILE, type Tile, type TileAt } from "../../trace/source";

export const EXACT = 1024; // up to so many queries and keys every difference is looked at

export type Ask = (at: TileAt, coarse: boolean, signal?: AbortSignal) => Promise<Tile>;

/** B − A of two tiles of the same place. A cell that only one of them may look at counts with a weight of zero. */
export function subtract(a: Tile, b: Tile): Tile {
  const less = (x: Float32Array, y: Float32Array): Float32Array => Float32Array.from(y, (value, i) => value - x[i]!);
  return {
    rows: b.rows, columns: b.columns, max: less(a.max, b.max), mean: less(a.mean, b.mean),
    allowed: b.allowed.map((share, i) => Math.max(share, a.allowed[i]!)), sampled: Math.max(a.sampled, b.sampled),
  };
}

/** Four tiles of single differences, or fewer, seen from farther: the difference of largest size, with its sign. */
export function poolDifferences(
  at: TileAt, shape: readonly [number, number], exact: (row: number, column: number) => number,
  open: (row: number, column: number) => boolean,
): Tile {
  const size = 2 ** at.level;
  const rows = Math.min(TILE, Math.ceil(shape[0] / size) - at.row * TILE), columns = Math.min(
    TILE, Math.ceil(shape[1] / size) - at.column * TILE,
  );
  const cells = rows * columns;
  const max = new Float32Array(cells), mean = new Float32Array(cells), allowed = new Uint8Array(cells);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      let most = 0, sum = 0, seen = 0, all = 0;
      const top = (at.row * TILE + row) * size, left = (at.column * TILE + column) * size;
      for (let i = top; i < Math.min(shape[0], top + size); i++)
        for (let j = left; j < Math.min(shape[1], left + size); j++) {
          all++;
          if (!open(i, j)) continue;
          const value = exact(i, j);
          seen++;
          sum += value;
          if (Math.abs(value) > Math.abs(most)) most = value;
        }
      const cell = row * columns + column;
      max[cell] = most;
      mean[cell] = seen ? sum / seen : 0;
      allowed[cell] = seen === 0 ? 0 : seen === all ? 255 : Math.min(254, Math.max(1, Math.round((255 * seen) / all)));
    }
  return { rows, columns, max, mean, allowed, sampled: 0 };
}

/** Where the two maps differ most, and how much they differ on average. */
export interface DifferenceFacts {
  readonly largest: number; // B − A
  readonly query: number;
  readonly key: number;
  readonly mean: number; // of |B − A| over what may be looked at
  readonly size: number; // 1: of single weights; n: of means over n × n
}

export interface Difference {
  readonly tile: Ask;
  readonly facts: (at: HeadAt, signal?: AbortSignal) => Promise<DifferenceFacts>;
  readonly exact: boolean; // every single weight is compared
}

/** The difference of two sources whose maps of this layer have the same shape. */
export function differenceOf(a: Source, b: Source, shape: readonly [queries: number, keys: number]): Difference {
  const exact = Math.max(...shape) <= EXACT;
  const singles = new SingleDifferences(a, b, shape);
  const tile: Ask = async (at, coarse, signal) => {
    if (at.level === 0) return singles.tile(at, signal);
    if (exact) {
      const { layer, batch, head } = at, all = await singles.head({ layer, batch, head }, signal);
      return poolDifferences(at, shape, all.value, all.open);
    }
    const [one, two] = await Promise.all([a.tile(at, coarse, signal), b.tile(at, coarse, signal)]);
    const less = subtract(one, two);
    return { ...less, max: less.mean }; // the largest of pooled tiles cannot be subtracted
  };
  const facts = async (at: HeadAt, signal?: AbortSignal): Promise<DifferenceFacts> => {
    if (exact) return exactFacts(await singles.head(at, signal), shape);
    const level = Math.max(0, Math.ceil(Math.log2(Math.max(...shape) / TILE)));
    return meanFacts(await tile({ ...at, level, row: 0, column: 0 }, false, signal), 2 ** level);
  };
  return { tile, facts, exact };
}

interface CellsOfHead {
  readonly value: (query: number, key: number) => number;
  readonly open: (query: number, key: number) => boolean;
}

const MOST_TILES = 64; // that are kept

/** Differences weight by weight; those of a few heads are kept. */
class SingleDifferences {
  private readonly tiles = new Map<string, Promise<Tile>>();

  constructor(
    private readonly a: Source, private readonly b: Source, private readonly shape: readonly [number, number],
  ) {}

  tile(at: TileAt, signal?: AbortSignal): Promise<Tile> {
    const { a, b, tiles } = this, name = [at.layer, at.batch, at.head, at.row, at.column].join(" ");
    const known = tiles.get(name);
    if (known) return known;
    const difference = Promise.all([a.tile(at, false, signal), b.tile(at, false, signal)])
      .then(([one, two]) => subtract(one, two));
    tiles.set(name, difference);
    difference.catch(() => tiles.delete(name));
    for (const old of tiles.keys()) if (tiles.size > MOST_TILES) tiles.delete(old);
    return difference;
  }

  /** All of a head. */
  async head(at: HeadAt, signal?: AbortSignal): Promise<CellsOfHead> {
    const across = Math.ceil(this.shape[1] / TILE), down = Math.ceil(this.shape[0] / TILE);
    const tiles = await Promise.all(Array.from({ length: across * down }, (_, i) =>
      this.tile({ ...at, level: 0, row: Math.floor(i / across), column: i % across }, signal)));
    const find = (i: number, j: number): readonly [Tile, number] => {
      const tile = tiles[Math.floor(i / TILE) * across + Math.floor(j / TILE)]!;
      return [tile, (i % TILE) * tile.columns + (j % TILE)];
    };
    return {
      value: (i, j) => { const [tile, cell] = find(i, j); return tile.max[cell]!; },
      open: (i, j) => { const [tile, cell] = find(i, j); return tile.allowed[cell] !== 0; },
    };
  }
}

/** Collects differences one by one. */
class FactCollector {
  private largest = 0;
  private query = 0;
  private key = 0;
  private sum = 0;
  private count = 0;

  add(value: number, query: number, key: number): void {
    this.count++;
    this.sum += Math.abs(value);
    if (Math.abs(value) > Math.abs(this.largest)) [this.largest, this.query, this.key] = [value, query, key];
  }

  facts(size: number): DifferenceFacts {
    const { largest, query, key, sum, count } = this;
    return { largest, query, key, mean: count ? sum / count : 0, size };
  }
}

function exactFacts({ value, open }: CellsOfHead, [queries, keys]: readonly [number, number]): DifferenceFacts {
  const collector = new FactCollector();
  for (let i = 0; i < queries; i++)
    for (let j = 0; j < keys; j++) if (open(i, j)) collector.add(value(i, j), i, j);
  return collector.facts(1);
}

/** From a tile of means over `size` × `size` weights. */
function meanFacts({ mean, allowed, columns }: Tile, size: number): DifferenceFacts {
  const collector = new FactCollector();
  mean.forEach((value, cell) => {
    if (allowed[cell] !== 0) collector.add(value, Math.floor(cell / columns) * size, (cell % columns) * size);
  });
  return collector.facts(size);
}
