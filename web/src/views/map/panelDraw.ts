/** Draws a map panel: cells, axes, legend and labels, from what its state holds. */
import { NOTHING } from "../../choose/choice";
import { errorText } from "../../language/errorText";
import type { HatchKind } from "../../paint/hatch";
import { type Axes, type AxisLabel, axesOf, roomsOf } from "./axes";
import { type PlacedTile, type MapFrame, hasBlocked, tilesToDraw } from "./cells";
import { drawMap } from "./draw";
import { type Camera, levelOf, overviewLevel, tilesIn, xOf } from "./geometry";
import { type Head, placeOf } from "./head";
import { paintLabels, paintTicks } from "./labels";
import { type LegendFacts, legend } from "./legend";
import { type AxisNames, ruler } from "./names";
import { PanelColours } from "./panelColours";
import type { PaintedFrame, PanelState } from "./panelState";
import type { Stage } from "./stage";

const LEAST = 40; // pixels on a side below which nothing is drawn

export class PanelPainter {
  readonly colours: PanelColours;
  readonly measure: (text: string) => number;
  private readonly showLegend: ReturnType<typeof legend>;

  /** `onPainted` is called after each frame: the map may have moved below the pointer. */
  constructor(
    private readonly state: PanelState, private readonly stage: Stage, private readonly onPainted: () => void,
  ) {
    const { scene, options } = state;
    this.colours = new PanelColours(scene, options);
    this.measure = ruler(stage.paper.context);
    this.showLegend = legend(stage.legend, scene.say);
  }

  /** Gives names and cells their room; needed when the head or the size is another one. */
  layOut(): void {
    const { head, lens, scene } = this.state, size = this.stage.paper.size();
    const fits = head !== null && size.width >= LEAST && size.height >= LEAST;
    const title = (): number => this.measure(scene.say("map.queries"));
    const rooms = fits ? roomsOf(head.queries, head.keys, size.width, size.height, this.measure, title()) : null;
    lens.layOut(head?.shape ?? null, size, rooms);
  }

  draw(): void {
    const { scene, head, lens, frames } = this.state, { paper } = this.stage;
    frames.begin();
    const { width, height } = paper.size();
    paper.context.clearRect(0, 0, width, height);
    this.stage.wear(scene.theme());
    this.showTrouble();
    if (head === null || lens.camera === null) return frames.finish();
    const painted = this.compose(head, lens.camera);
    this.paint(painted);
    this.state.painted = painted;
    this.tell(head, painted.facts);
    this.onPainted();
    frames.finish();
  }

  /** The labels of both axes, for the screen and for a figure alike. */
  axesFor(head: Head, frame: MapFrame): Axes {
    const { say } = this.state.scene;
    return axesOf({
      ...frame, gutters: this.state.lens.gutters, queries: head.queries, keys: head.keys, measure: this.measure,
      titles: { queries: say("map.queries"), keys: say("map.keys") },
    });
  }

  namesFor = ({ which }: AxisLabel): AxisNames | null =>
    which === "title" ? null : which === "query" ? this.state.head!.queries : this.state.head!.keys;

  /** Asks for the tiles in sight, and decides what is drawn with those that are here. */
  private compose(head: Head, camera: Camera): PaintedFrame {
    const { lens, tiles, around, scene } = this.state, { shape } = head, ratio = this.stage.paper.ratio();
    const level = levelOf(camera, ratio), topmost = overviewLevel(shape), at = placeOf(head);
    const overview = { ...at, level: topmost, row: 0, column: 0 };
    const wanted = tilesIn(lens.seen()!, level).map((place) => ({ ...at, level, ...place }));
    tiles.want(level > topmost ? wanted : [overview, ...wanted]);
    const drawn = tilesToDraw(wanted, (one) => tiles.get(one), topmost, shape), missing = drawn.length < wanted.length;
    const { query, key } = scene.choice.picked.peek(), hover = scene.choice.hover.peek();
    const frame: MapFrame = {
      camera, shape, box: lens.box, theme: scene.theme(), ratio, level, hidden: around.hidden(), query, key,
      by: this.colours.of(head, drawn, tiles.get(overview)?.tile, level),
      hover: hover.layer === null || hover.layer === head.layer ? hover : NOTHING,
    };
    const facts = this.factsOf(frame, drawn, missing);
    return { frame, tiles: drawn, missing, axes: this.axesFor(head, frame), facts };
  }

  private factsOf({ by, level, hidden }: MapFrame, drawn: readonly PlacedTile[], missing: boolean): LegendFacts {
    const padding = hidden !== null && (hidden.unseen.includes(1) || hidden.blind.includes(1));
    const present = { blocked: drawn.some(({ held }) => hasBlocked(held, hidden)), padding, unknown: missing };
    return {
      by, level: Math.max(level, ...drawn.map(({ held }) => held.at.level)), finer: !this.state.tiles.done,
      sampled: Math.max(0, ...drawn.map(({ held }) => held.tile.sampled)),
      hatches: (["blocked", "padding", "unknown"] as const).filter((kind: HatchKind) => present[kind]),
    };
  }

  private paint({ frame, tiles, missing, axes }: PaintedFrame): void {
    const { context } = this.stage.paper, { width, height } = this.stage.paper.size(), { theme } = frame;
    drawMap(context, frame, tiles, missing, this.measure);
    paintTicks(context, axes.ticks, theme);
    paintLabels(context, axes.labels, this.namesFor, theme, this.measure, { left: 2, right: width - 2 });
    if (!this.stage.focused()) return;
    context.strokeStyle = theme.focus;
    context.lineWidth = 2;
    context.strokeRect(1, 1, width - 2, height - 2);
  }

  /** The words around the picture: badge, name for screen readers, legend. */
  private tell(head: Head, facts: LegendFacts): void {
    const { around, lens, scene, showsWeights } = this.state, { say } = scene;
    const note = showsWeights ? around.note(say) : { text: "", about: "" };
    this.stage.badge(note.text, note.about);
    this.stage.name(say, say("map.label", { layer: head.layer, head: head.head, ...head.shape }), lens.whole());
    this.showLegend(facts, scene.theme()); // may change the room of the plot; the next frame follows it
  }

  private showTrouble(): void {
    const { head, lens, failure, retry, scene } = this.state, { camera, box } = lens;
    const cells = head === null || camera === null ? null : { x: Math.max(box.x, xOf(camera, box, 0)), y: box.y };
    this.stage.alarm(this.trouble(), failure === null ? null : retry, scene.say, cells);
  }

  /** Why there is nothing to see, or not all of it; "" where all is well. */
  private trouble(): string {
    const { head, failure, scene } = this.state, { layer } = scene.choice.picked.peek();
    const info = scene.source.info.layers[layer];
    if (info === undefined) return scene.say("map.absent", { layer });
    if (head === null) return scene.say("map.empty", { queries: info.shape[2], keys: info.shape[3] });
    return failure === null ? "" : scene.say("map.failed", { why: errorText(failure) });
  }
}
