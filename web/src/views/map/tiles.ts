/** Tiles that are here and tiles that are asked for. As many as a screen needs, never more than a limit. */
import { type Hidden, TILE, type Tile, type TileAt } from "../../trace/source";

export type AskTile = (at: TileAt, coarse: boolean, signal: AbortSignal) => Promise<Tile>;

/** A tile that is here, with its picture once it was painted. */
export interface LoadedTile {
  readonly at: TileAt;
  readonly tile: Tile;
  readonly open: boolean; // nothing in it is blocked
  picture: CanvasImageSource | null;
  paintedAs: string; // the colours of the picture
  blockedBy: { readonly hidden: Hidden; readonly any: boolean } | null; // whether, padding aside, anything is blocked
}

export const MOST_TILES = 96;
const AT_ONCE = 4; // questions in the air
const COARSE_FROM = 3; // from this level on an exact tile takes time, so that a first look comes before it

export const nameOf = (at: TileAt): string => [at.layer, at.batch, at.head, at.level, at.row, at.column].join("/");

interface Job {
  readonly coarse: boolean;
  readonly stop: AbortController;
}

export class Tiles {
  private readonly here = new Map<string, LoadedTile>(); // the least lately used first
  private readonly asked = new Map<string, Job>();
  private readonly broken = new Set<string>();
  private wanted = new Map<string, TileAt>();

  /** `heard` is called after each tile that came, `failed` after each that could not. */
  constructor(
    private readonly ask: AskTile,
    private readonly heard: () => void,
    private readonly failed: (error: unknown) => void,
    private readonly most = MOST_TILES,
  ) {}

  get size(): number {
    return this.here.size;
  }

  /** Whether every wanted tile is here and exact, or cannot be had. */
  get done(): boolean {
    return this.asked.size === 0 && this.next() === null;
  }

  get(at: TileAt): LoadedTile | undefined {
    const name = nameOf(at), found = this.here.get(name);
    if (found !== undefined) {
      this.here.delete(name); // and last again: lately used
      this.here.set(name, found);
    }
    return found;
  }

  /** Asks for these, the first ones first, and lets go of questions whose answer is no longer wanted. */
  want(list: readonly TileAt[]): void {
    this.wanted = new Map(list.map((at) => [nameOf(at), at]));
    for (const [name, job] of this.asked)
      if (!this.wanted.has(name)) {
        job.stop.abort();
        this.asked.delete(name);
      }
    this.pump();
  }

  /** Asks again for what failed. */
  again(): void {
    this.broken.clear();
    this.pump();
  }

  stop(): void {
    for (const job of this.asked.values()) job.stop.abort();
    this.asked.clear();
    this.wanted.clear();
    this.here.clear();
  }

  /** A first look at everything comes before an exact look at anything. */
  private next(): { at: TileAt; coarse: boolean } | null {
    const open = [...this.wanted].filter(([name]) => !this.asked.has(name) && !this.broken.has(name));
    const bare = open.find(([name, at]) => at.level >= COARSE_FROM && !this.here.has(name));
    if (bare !== undefined) return { at: bare[1], coarse: true };
    const rough = open.find(([name]) => (this.here.get(name)?.tile.sampled ?? 1) > 0);
    return rough === undefined ? null : { at: rough[1], coarse: false };
  }

  private pump(): void {
    for (let job = this.next(); job !== null && this.asked.size < AT_ONCE; job = this.next())
      this.start(job.at, job.coarse);
  }

  private start(at: TileAt, coarse: boolean): void {
    const name = nameOf(at), stop = new AbortController();
    const mine: Job = { coarse, stop };
    this.asked.set(name, mine);
    const over = (): boolean => this.asked.get(name) === mine && this.asked.delete(name);
    this.ask(at, coarse, stop.signal).then(
      (tile) => {
        const current = over();
        if (!current && this.here.has(name)) return;
        if (stop.signal.aborted && !current) return;
        // An exact answer to an exact question is exact, whatever it says of itself: else it would be asked for ever.
        this.put(name, {
          at, tile: coarse ? tile : { ...tile, sampled: 0 }, open: !tile.allowed.includes(0), picture: null,
          paintedAs: "", blockedBy: null,

        });
        this.heard();
        this.pump();
      },
      (error: unknown) => {
        if (!over() || stop.signal.aborted) return;
        this.broken.add(name);
        this.failed(error);
        this.pump();
      },
    );
  }

  private put(name: string, held: LoadedTile): void {
    this.here.delete(name);
    this.here.set(name, held);
    for (const old of this.here.keys()) {
      if (this.here.size <= this.most) break;
      if (!this.wanted.has(old)) this.here.delete(old);
    }
  }
}

/** Which cell of a tile holds this weight. */
export function cellIn(at: TileAt, tile: Tile, query: number, key: number): number {
  const side = 2 ** at.level;
  const row = Math.floor(query / side) - at.row * TILE, column = Math.floor(key / side) - at.column * TILE;
  return row * tile.columns + column;
}
