/** What a map panel knows: which head it shows, its tiles, what is in sight, and what was painted last. */
import { TILE, type Tile, type TileAt } from "../../trace/source";
import type { Scene } from "../parts/view";
import { type LayerNote, watchLayer } from "./layerNote";
import type { Axes } from "./axes";
import type { PlacedTile, MapFrame } from "./cells";
import { valuesOf } from "./colours";
import { FrameQueue } from "./frameQueue";
import { type Head, headOf, placeOf } from "./head";
import { type Hit, hitAt } from "./hit";
import type { LegendFacts } from "./legend";
import { Viewport } from "./viewport";
import { type RowCache, rowCache } from "./rows";
import { Tiles, cellIn } from "./tiles";
import type { Pixel } from "./tipText";
import { type SharedZoom, sharedZoom } from "./sharedZoom";

export interface PanelOptions {
  /** Where tiles come from; without it, from the scene's source. `max` may hold signed differences. */
  readonly tiles?: (at: TileAt, coarse: boolean, signal: AbortSignal) => Promise<Tile>;
  readonly diverging?: boolean; // tiles hold differences
  readonly title?: string;
  readonly el?: HTMLElement; // in place of the scene's
  readonly top?: () => number | null; // where the colours end, for maps that share a scale; may read a signal
}

/** One frame as it was painted. */
export interface PaintedFrame {
  readonly frame: MapFrame;
  readonly tiles: readonly PlacedTile[];
  readonly missing: boolean; // some tiles have nothing to stand in for them
  readonly axes: Axes;
  readonly facts: LegendFacts;
}

const STEP = 1.6; // one press of + or −

export class PanelState {
  readonly zooming: SharedZoom;
  readonly rows: RowCache;
  readonly lens: Viewport;
  readonly around: LayerNote;
  readonly tiles: Tiles;
  readonly frames: FrameQueue;
  head: Head | null = null;
  failure: unknown = null; // of the last tile that could not be had
  painted: PaintedFrame | null = null;

  constructor(readonly scene: Scene, readonly options: PanelOptions, draw: () => void) {
    const { source, choice, signal } = scene;
    this.frames = new FrameQueue(draw, () => this.isComplete(), signal);
    this.zooming = sharedZoom(choice);
    this.rows = rowCache(source, signal);
    this.lens = new Viewport(this.zooming, this.frames.request);
    this.around = watchLayer(source, this.frames.request, signal);
    this.tiles = new Tiles((at, coarse, stop) => this.ask(at, coarse, stop), this.frames.request, (error) => {
      this.failure = error;
      this.frames.request();
    });
    signal.addEventListener("abort", () => this.tiles.stop(), { once: true });
  }

  /** Whether the cells are weights of the scene's source, so that rows and proofs speak of them. */
  get showsWeights(): boolean {
    return this.options.tiles === undefined;
  }

  private ask(at: TileAt, coarse: boolean, stop: AbortSignal): Promise<Tile> {
    return (this.options.tiles ?? this.scene.source.tile.bind(this.scene.source))(at, coarse, stop);
  }

  /** Takes the head that is picked now; true where its layer or batch entry is another one. */
  takeHead(): boolean {
    const { source, choice } = this.scene;
    const next = headOf(source, choice.picked.peek(), this.head);
    const isOther = next === null || next.layer !== this.head?.layer || next.batch !== this.head.batch;
    if (isOther || next.head !== this.head?.head) this.failure = null;
    this.head = next;
    return isOther;
  }

  /** Nearer or farther by one step, around what is picked. */
  stepZoom(nearer: boolean): boolean {
    const { query, key } = this.scene.choice.picked.peek();
    return this.lens.step(nearer ? STEP : 1 / STEP, query, key);
  }

  retry = (): void => {
    this.failure = null;
    this.tiles.again();
    this.frames.request();
  };

  /** Whether nothing more is on its way. */
  private isComplete(): boolean {
    const isEmpty = this.head === null || this.lens.camera === null;
    return isEmpty || (this.tiles.done && this.around.hidden() !== null);
  }

  /** The tile of single weights at this place, from here or asked for. */
  async exactTile(head: Head, row: number, column: number): Promise<Tile> {
    const at = { ...placeOf(head), level: 0, row, column };
    return this.tiles.get(at)?.tile ?? this.ask(at, false, this.scene.signal);
  }

  /** The weight as painted, of level 0; null where that tile is not here or the cell may not be looked at. */
  weightAt(query: number, key: number): number | null {
    if (this.head === null) return null;
    const at = { ...placeOf(this.head), level: 0, row: Math.floor(query / TILE), column: Math.floor(key / TILE) };
    const tile = this.tiles.get(at)?.tile, cell = tile === undefined ? 0 : cellIn(at, tile, query, key);
    return tile === undefined || tile.allowed[cell] === 0 ? null : (tile.max[cell] ?? null);
  }

  /** What stands for this weight in the picture now. */
  pixelAt = (query: number, key: number): Pixel | null => {
    const { painted } = this;
    const held = painted?.tiles.find(
      ({ part }) => query >= part.top && query < part.bottom && key >= part.left && key < part.right
    )?.held;
    if (held === undefined || painted === null) return null;
    const cell = cellIn(held.at, held.tile, query, key);
    return {
      value: valuesOf(held.tile, painted.frame.by.pool)[cell]!, level: held.at.level,
      allowed: held.tile.allowed[cell] !== 0,
    };
  };

  /** What lies under a place of the canvas. */
  hitAt = (x: number, y: number): Hit | null => {
    const { head, lens } = this, slanted = this.painted?.axes.labels.some((label) => label.slanted) ?? false;
    return head === null || lens.camera === null ? null : hitAt(lens.camera, head.shape, lens.box, x, y, slanted);
  };
}
