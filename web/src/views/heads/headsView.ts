/** The lines as they are drawn: what is in sight, asked for block by block, and painted once per frame. */
import { errorText } from "../../language/errorText";
import { type ViewFrame, viewFrame, perFrame, textMeasure } from "../parts/dom";
import { styled } from "../parts/element";
import { scroller } from "../parts/scroller";
import type { Scene } from "../parts/view";
import { Blocks } from "./blocks";
import { type Sight, columns, rowOf, visibleQueries, tall, scrollToQuery } from "./layout";
import { type Block, type Line, linesOf, strongest } from "./lines";
import { type HeadsDrawing, FONT, paintHeads } from "./paint";
import { type HeadsState, litOf, headsState, wantedOf } from "./state";
import { notes, sentence } from "./words";

const WHILE_MOVING = 500; // lines; all of them are drawn when the scrolling rests
const REST = 120; // milliseconds

export interface PaintedHeads {
  readonly state: HeadsState;
  readonly drawing: HeadsDrawing;
  readonly notes: readonly string[];
}

interface LinesInSight {
  readonly lines: Line[];
  readonly blocks: Block[];
  readonly range: readonly [number, number]; // queries
}

export class HeadsView {
  readonly frame: ViewFrame;
  readonly scroll: ReturnType<typeof scroller>;
  readonly repaint: () => void;
  readonly state: () => HeadsState | null;
  painted: PaintedHeads | null = null;
  private readonly blocks: Blocks;
  private spoken = "";
  private isMoving = false;
  private restTimer = 0;
  private shownQuery: number | null = null;

  constructor(readonly scene: Scene) {
    const { el, source, choice, signal } = scene;
    this.frame = viewFrame(el, signal);
    this.scroll = scroller(this.frame.stage, signal);
    this.state = headsState(source, choice, textMeasure(this.scroll.surface.context, FONT));
    this.repaint = perFrame(() => this.paint(), signal);
    this.blocks = new Blocks(source, this.repaint, signal);
    signal.addEventListener("abort", () => window.clearTimeout(this.restTimer), { once: true });
  }

  private sightOf({ queries, keys }: HeadsState): Sight {
    const { width, height } = this.scroll.surface.size();
    return {
      width, height, row: rowOf(height, Math.max(queries.count, keys.count)), scroll: this.scroll.top(),
      queries: queries.count, keys: keys.count, ...columns(width, queries.widest(width / 2), keys.widest(width / 2)),
    };
  }

  /** Lines of what is in sight, from the blocks that are here; the rest is asked for. */
  private linesIn(state: HeadsState, sight: Sight): LinesInSight {
    const range = visibleQueries(sight, state.queries.count), without = new Set(state.without);
    const byHead = range[1] < 0 ? new Map<number, Block[]>() : this.blocks.of(wantedOf(state), ...range);
    const lines = [...byHead].flatMap(([head, blocks]) =>
      blocks.flatMap((block) => linesOf(block, head, ...range, without, state.threshold)));
    return { lines, blocks: [...byHead.values()].flat(), range };
  }

  paint(): void {
    const { scene, frame, blocks } = this, { say } = scene, state = this.state();
    frame.dress(scene.theme());
    if (state === null || state.queries.count === 0 || state.keys.count === 0) return frame.alert(say("heads.empty"));
    const row = rowOf(this.scroll.surface.size().height, Math.max(state.queries.count, state.keys.count));
    this.scroll.extent(0, tall(row, state.queries.count, state.keys.count));
    const sight = this.sightOf(state), inSight = this.linesIn(state, sight);
    frame.alert(blocks.error === null ? "" : errorText(blocks.error));
    const drawing = this.drawingOf(state, sight, inSight.lines);
    const words = notes(state, inSight.lines, inSight.blocks, inSight.range, drawing.lit, say);
    this.painted = { state, drawing, notes: words };
    this.paintLines(drawing, state.threshold);
    frame.foot.replaceChildren(...[say("heads.read"), ...words].map((text) => styled("span", {}, text)));
    this.speak(state, inSight);
  }

  private drawingOf(state: HeadsState, sight: Sight, lines: Line[]): HeadsDrawing {
    const { choice, say, theme } = this.scene;
    return {
      sight, lines, heads: state.heads, lit: litOf(state, choice.hover.value), pinned: state.pinned,
      without: new Set(state.without), queries: state.queries, keys: state.keys, theme: theme(),
      words: { queries: say("queries"), keys: say("keys") }, strand: null,
    };
  }

  private paintLines(drawing: HeadsDrawing, threshold: number): void {
    const { say } = this.scene, { context, ratio } = this.scroll.surface, { lines } = drawing;
    const few = this.isMoving ? { lines: strongest(lines, WHILE_MOVING), strand: 1 / ratio() } : {};
    const nothing = this.blocks.busy ? say("heads.loading") : say("heads.none", { threshold });
    paintHeads(context, { ...drawing, ...few }, lines.length === 0 ? nothing : "");
  }

  /** The pinned row as a sentence, for screen readers. */
  private speak(state: HeadsState, { lines, range }: LinesInSight): void {
    const { query } = state.pinned, { head: picked } = this.scene.choice.picked.value;
    if (query === null || query < range[0] || query > range[1] || this.blocks.busy) return;
    const head = state.heads.includes(picked) ? picked : state.heads[0]!;
    const words = sentence(state, lines, query, head, this.scene.say);
    if (words !== this.spoken) this.frame.live.textContent = this.spoken = words;
  }

  /** Brings the pinned query into sight when it is another one. */
  followQuery(): void {
    const state = this.state(), query = state?.pinned.query ?? null;
    if (state !== null && query !== null && query !== this.shownQuery && this.scroll.surface.size().height > 0)
      this.scroll.to(0, scrollToQuery(this.sightOf(state), query));
    this.shownQuery = query;
  }

  resize(): void {
    this.shownQuery = null;
    this.followQuery();
    this.paint();
  }

  /** While it scrolls, fewer lines are drawn. */
  scrolled(): void {
    this.isMoving = true;
    window.clearTimeout(this.restTimer);
    this.restTimer = window.setTimeout(() => {
      this.isMoving = false;
      this.repaint();
    }, REST);
    this.repaint();
  }

  /** The queries in sight, first and last. */
  visible(): readonly [number, number] {
    return this.painted === null ? [0, -1] : visibleQueries(this.painted.drawing.sight, this.painted.state.queries.count);
  }
}
