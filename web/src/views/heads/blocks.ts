/** Asks for the strongest keys block by block, keeps what came, and calls off what nobody waits for any more. */
import type { HeadAt, Source, Top } from "../../trace/source";
import { isAbort } from "../../language/errorText";
import type { Block } from "./lines";

export const BLOCK = 64; // queries
const KEPT = 256; // blocks
const FEW_COLUMNS = 32; // more hidden keys than this are read row by row

export interface WantedHead {
  readonly at: HeadAt;
  readonly queries: number;
  readonly keys: number;
  readonly count: number;
  readonly without: readonly number[];
}

export class Blocks {
  private readonly kept = new Map<string, Block>();
  private readonly columns = new Map<string, Promise<Float32Array>>();
  private readonly waiting = new Map<string, AbortController>();
  private readonly failed = new Set<string>(); // not asked again while they are in sight
  error: unknown = null;

  constructor(private readonly source: Source, private readonly changed: () => void, signal: AbortSignal) {
    signal.addEventListener("abort", () => this.keepOnly(new Set()), { once: true });
  }

  /** Whether something is still being asked. */
  get busy(): boolean {
    return this.waiting.size > 0;
  }

  /** The blocks that are here of the queries from `first` to `last` of these heads; the others are asked. */
  of(wanted: readonly WantedHead[], first: number, last: number): Map<number, Block[]> {
    const blocks = new Map<number, Block[]>(), keys = new Set<string>(), missing: (() => void)[] = [];
    for (const want of wanted) {
      const here: Block[] = [];
      for (let start = Math.floor(first / BLOCK) * BLOCK; start <= last; start += BLOCK) {
        const { layer, batch, head } = want.at;
        const key = `${layer} ${batch} ${head} ${want.count} ${want.without.join(",")} ${start}`;
        keys.add(key);
        const block = this.kept.get(key);
        if (block !== undefined) {
          this.kept.delete(key); // the youngest stands last
          this.kept.set(key, block);
          here.push(block);
        } else if (!this.waiting.has(key) && !this.failed.has(key)) missing.push(() => this.ask(key, want, start));
      }
      blocks.set(want.at.head, here);
    }
    this.keepOnly(keys);
    if (this.failed.size === 0) this.error = null;
    for (const ask of missing) ask();
    return blocks;
  }

  private keepOnly(keys: ReadonlySet<string>): void {
    for (const [key, call] of this.waiting)
      if (!keys.has(key)) {
        this.waiting.delete(key);
        call.abort();
      }
    for (const key of this.failed) if (!keys.has(key)) this.failed.delete(key);
  }

  private ask(key: string, want: WantedHead, first: number): void {
    const call = new AbortController();
    this.waiting.set(key, call);
    this.load(want, first, call.signal).then(
      (block) => {
        if (this.waiting.get(key) !== call) return;
        this.waiting.delete(key);
        this.kept.set(key, block);
        for (const oldest of this.kept.keys()) {
          if (this.kept.size <= KEPT) break;
          this.kept.delete(oldest);
        }
        this.changed();
      },
      (error: unknown) => {
        if (this.waiting.get(key) !== call) return;
        this.waiting.delete(key);
        if (!isAbort(error)) {
          this.failed.add(key);
          this.error = error;
        }
        this.changed();
      },
    );
  }

  private async load(want: WantedHead, first: number, signal: AbortSignal): Promise<Block> {
    const queries = Math.min(BLOCK, want.queries - first);
    const top = await this.source.top(want.at, first, queries, want.count, signal);
    return { top, hidden: want.without.length === 0 ? null : await this.hidden(want, top, signal) };
  }

  /** Which share of each query went to the hidden keys: read from what came if that is all, else asked. */
  private async hidden(want: WantedHead, top: Top, signal: AbortSignal): Promise<Float32Array> {
    const shares = new Float64Array(top.queries), without = new Set(want.without);
    if (top.count >= want.keys)
      top.keys.forEach((key, i) => {
        if (without.has(key)) shares[Math.floor(i / top.count)]! += top.weights[i]!;
      });
    else if (want.without.length <= FEW_COLUMNS)
      for (const column of await Promise.all(want.without.map((key) => this.column(want.at, key))))
        for (let i = 0; i < top.queries; i++) shares[i]! += column[top.first + i]!;
    else
      for (let i = 0; i < top.queries; i++) {
        const { weights } = await this.source.row(want.at, top.first + i, signal);
        for (const key of want.without) shares[i]! += weights[key]!;
      }
    return Float32Array.from(shares);
  }

  /** One key seen from all queries; asked once, whoever needs it first. */
  private column(at: HeadAt, key: number): Promise<Float32Array> {
    const name = `${at.layer} ${at.batch} ${at.head} ${key}`;
    let column = this.columns.get(name);
    if (column === undefined) {
      column = this.source.column(at, key).then((column) => column.weights);
      column.catch(() => this.columns.delete(name));
      if (this.columns.size > KEPT) this.columns.clear();
      this.columns.set(name, column);
    }
    return column;
  }
}
