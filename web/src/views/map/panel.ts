/** A map as a panel: the map view is one of them, and comparing puts several side by side with a zoom in common. */
import { sentenceOf } from "../../language/errorText";
import { NOTHING } from "../../choose/choice";
import type { HatchKind } from "../../paint/hatch";
import { TILE, type Tile, type TileAt } from "../../trace/source";
import type { Scene, Shown } from "../parts/view";
import { aroundOf } from "./around";
import { type Axes, type AxisLabel, axesOf, roomsOf } from "./axes";
import { type Drawn, type Frame, hasBlocked, toDraw } from "./cells";
import { type Colouring, colouring, valuesOf } from "./colours";
import { drawMap } from "./draw";
import { figure } from "./figure";
import { levelOf, overviewLevel, tilesIn, xOf, yOf } from "./geometry";
import { gestures } from "./gestures";
import { type Head, headOf, placeOf } from "./head";
import { type Hit, hitAt } from "./hit";
import { stepped } from "./keyboard";
import { paintLabels, paintTicks } from "./labels";
import { type Facts, legend } from "./legend";
import { Lens } from "./lens";
import { type Names, ruler } from "./names";
import { pointingOver } from "./pointing";
import { rowsOf } from "./rows";
import { stageIn } from "./stage";
import { tableOf } from "./table";
import { Tiles, nameOf } from "./tiles";
import { tip } from "./tip";
import type { Pixel } from "./tiptext";
import { voiceOf } from "./voice";
import { zoomingOf } from "./zooming";

export interface PanelOptions {
  /** Where tiles come from; without it, from the scene's source. `max` may hold signed differences. */
  readonly tiles?: (at: TileAt, coarse: boolean, signal: AbortSignal) => Promise<Tile>;
  readonly diverging?: boolean; // tiles hold differences
  readonly title?: string;
  readonly el?: HTMLElement; // in place of the scene's
  readonly top?: () => number | null; // where the colours end, for maps that share a scale; may read a signal
}

const STEP = 1.6; // one press of + or −

/** A zoomable map in an element. Never throws; what goes wrong stands in it as a sentence. */
export function mapPanel(scene: Scene, options: PanelOptions = {}): Shown {
  const { source, choice, say, signal } = scene;
  const el = options.el ?? scene.el, zooming = zoomingOf(choice), rows = rowsOf(source, signal);
  let asked = 0, waiting: (() => void)[] = [], failure: unknown = null;
  const soon = (): void => {
    if (asked === 0 && !signal.aborted) asked = requestAnimationFrame(draw);
  };
  const lens = new Lens(zooming, soon);
  const step = (factor: number): boolean => lens.step(factor, choice.picked.peek().query, choice.picked.peek().key);
  const stage = stageIn(el, options.title ?? "", {
    nearer: () => step(STEP), farther: () => step(1 / STEP), whole: () => lens.showAll(), changed: soon,
  }, signal);
  const { paper, plot } = stage, { canvas, context } = paper;
  const measure = ruler(context), showLegend = legend(stage.legend, say), around = aroundOf(source, soon, signal);
  const ask = options.tiles ?? ((at, coarse, stop) => source.tile(at, coarse, stop));
  const tiles = new Tiles(ask, soon, (error) => {
    failure = error;
    soon();
  });
  signal.addEventListener("abort", () => {
    tiles.stop();
    for (const wake of waiting.splice(0)) wake();
  }, { once: true });
  let head: Head | null = null, by: Colouring | null = null, byOf = "";
  let last: { frame: Frame; drawn: readonly Drawn[]; axes: Axes; facts: Facts } | null = null;

  const layOut = (): void => {
    const size = paper.size(), room = head !== null && size.width >= 40 && size.height >= 40;
    const rooms = room
      ? roomsOf(head!.queries, head!.keys, size.width, size.height, measure, measure(say("map.queries")))
      : null;
    lens.layOut(head?.shape ?? null, size, rooms);
  };
  const coloursFor = (now: Head, drawn: readonly Drawn[], overview: Tile | undefined, level: number): Colouring => {
    const { pool, scale } = choice.drawn.peek(), { dark } = scene.theme(), top = options.top?.() ?? null;
    const near = drawn.filter(({ held }) => held.at.level === level).map(({ held }) => held);
    const visible = pool === "max" && scale !== "rank"
      ? ""
      : near.map(({ at, tile }) => `${nameOf(at)} ${tile.sampled}`).sort().join();
    const of = [
      now.layer, now.batch, now.head, pool, scale, dark, top, overview?.sampled, overview === undefined && near.length,
      visible,
    ].join();
    if (by === null || byOf !== of)
      by = colouring(
        overview === undefined ? [] : [overview], near.map(({ tile }) => tile), pool, scale, dark,
        options.diverging ?? false, top,
      );
    byOf = of;
    return by;
  };
  const axesFor = (now: Head, frame: Frame): Axes =>
    axesOf({
      ...frame, gutters: lens.gutters, queries: now.queries, keys: now.keys, measure,
      titles: { queries: say("map.queries"), keys: say("map.keys") },
    });

  const draw = (): void => {
    asked = 0;
    const theme = scene.theme(), { width, height } = paper.size(), { camera, box } = lens;
    context.clearRect(0, 0, width, height);
    stage.wear(theme);
    const cells = head === null || camera === null ? null : { x: Math.max(box.x, xOf(camera, box, 0)), y: box.y };
    stage.alarm(trouble(), failure === null ? null : again, say, cells);
    if (head === null || camera === null) return rest();
    const { shape } = head, at = placeOf(head), ratio = paper.ratio();
    const level = levelOf(camera, ratio), topmost = overviewLevel(shape);
    const overview = { ...at, level: topmost, row: 0, column: 0 };
    const list = tilesIn(lens.seen()!, level).map((place) => ({ ...at, level, ...place }));
    tiles.want(level > topmost ? list : [overview, ...list]);
    const drawn = toDraw(list, (one) => tiles.get(one), topmost, shape), missing = drawn.length < list.length;
    const { query, key } = choice.picked.peek(), over = choice.hover.peek(), hidden = around.hidden();
    const frame: Frame = {
      camera, shape, box, theme, ratio, level, hidden, query, key,
      by: coloursFor(head, drawn, tiles.get(overview)?.tile, level),
      hover: over.layer === null || over.layer === head.layer ? over : NOTHING,
    };
    const axes = axesFor(head, frame);
    drawMap(context, frame, drawn, missing, measure);
    paintTicks(context, axes.ticks, theme);
    paintLabels(context, axes.labels, namesFor, theme, measure, { left: 2, right: width - 2 });
    if (stage.focused()) ring(width, height, theme.focus);

    const padding = hidden !== null && (hidden.unseen.includes(1) || hidden.blind.includes(1));
    const present = { blocked: drawn.some(({ held }) => hasBlocked(held, hidden)), padding, unknown: missing };
    const facts: Facts = {
      by: frame.by, level: Math.max(level, ...drawn.map(({ held }) => held.at.level)), finer: !tiles.done,
      sampled: Math.max(0, ...drawn.map(({ held }) => held.tile.sampled)),
      hatches: (["blocked", "padding", "unknown"] as const).filter((kind: HatchKind) => present[kind]),
    };
    last = { frame, drawn, axes, facts };
    const note = options.tiles === undefined ? around.note(say) : { text: "", about: "" };
    stage.badge(note.text, note.about);
    stage.name(say, say("map.label", { layer: head.layer, head: head.head, ...shape }), lens.whole());
    showLegend(facts, theme); // may change the room of the plot; the next frame follows it
    pointing.again();
    rest();
  };
  const ring = (width: number, height: number, color: string): void => {
    context.strokeStyle = color;
    context.lineWidth = 2;
    context.strokeRect(1, 1, width - 2, height - 2);
  };
  const rest = (): void => {
    if (asked !== 0 || (head !== null && lens.camera !== null && (!tiles.done || around.hidden() === null))) return;
    for (const wake of waiting.splice(0)) wake();
  };
  const settled = (): Promise<void> => {
    soon();
    return new Promise((wake) => (signal.aborted ? wake() : waiting.push(wake)));
  };
  const trouble = (): string => {
    const { layer } = choice.picked.peek(), info = source.info.layers[layer];
    if (info === undefined) return say("map.absent", { layer });
    if (head === null) return say("map.empty", { queries: info.shape[2], keys: info.shape[3] });
    return failure === null
      ? ""
      : say("map.failed", { why: sentenceOf(failure) });
  };
  const again = (): void => {
    failure = null;
    tiles.again();
    soon();
  };
  const namesFor = ({ which }: AxisLabel): Names | null =>
    (which === "title" ? null : which === "query" ? head!.queries : head!.keys);

  const pixelAt = (query: number, key: number): Pixel | null => {
    const found = last?.drawn.find(
      ({ part }) => query >= part.top && query < part.bottom && key >= part.left && key < part.right
    )?.held;
    if (found === undefined || last === null) return null;
    const cell = cellIn(found.at, found.tile, query, key);
    return {
      value: valuesOf(found.tile, last.frame.by.pool)[cell]!, level: found.at.level,
      allowed: found.tile.allowed[cell] !== 0,
    };
  };
  const hit = (x: number, y: number): Hit | null => {
    const slanted = last?.axes.labels.some((label) => label.slanted) ?? false;
    return head === null || lens.camera === null ? null : hitAt(lens.camera, head.shape, lens.box, x, y, slanted);
  };
  const pointing = pointingOver({
    choice, say, theme: scene.theme, rows: options.tiles === undefined ? rows : null, tip: tip(plot), head: () => head,
    hidden: around.hidden, hit, pixel: pixelAt,
  });
  const read = voiceOf(choice, rows, say, stage.say);

  gestures(canvas, {
    zoom: lens.zoom,
    pan: (dx, dy) => {
      pointing.leave();
      lens.pan(dx, dy);
    },
    hover: (x, y) => {
      canvas.style.cursor = pointing.over(x, y) === null ? "" : "crosshair";
    },
    leave: pointing.leave,
    click: (x, y, shift) => {
      const found = hit(x, y), { query, key } = choice.picked.peek();
      if (found === null) return;
      const next = shift && found.query !== null
        ? { query: found.query, key: null }
        : { query: found.query, key: found.key };
      choice.pick(next.query === query && next.key === key ? { query: null, key: null } : next);
    },
    key: (event) => {
      const view = lens.seen();
      if (head === null || view === null) return false;
      if (event.key === "+" || event.key === "=") return step(STEP), true;
      if (event.key === "-") return step(1 / STEP), true;
      if (event.key === "0") return lens.showAll(), true;
      const next = stepped(event.key, event.shiftKey, choice.picked.peek(), head.shape, view);
      if (next === null) return false;
      choice.pick(next);
      read(head);
      return true;
    },
  }, signal);

  let before: { query: number | null; key: number | null } | null = null;
  choice.watch(() => {
    const picked = choice.picked.value, { query, key } = picked;
    void [
      choice.drawn.value, choice.hover.value, scene.theme(), say("map.keys"), zooming.live.value, options.top?.(),
    ]; // read, to be told
    zooming.follow(picked.zoom);
    const next = headOf(source, picked, head);
    const other = next === null || next.layer !== head?.layer || next.batch !== head.batch;
    if (other || next.head !== head?.head) failure = null;
    head = next;
    if (other || lens.camera === null) layOut();
    else lens.follow();
    const moved = before !== null && (before.query !== query || before.key !== key);
    if (moved) lens.show({ ...(query === null ? {} : { query }), ...(key === null ? {} : { key }) });
    before = { query, key };
    if (head !== null) around.look(head);
    soon();
  }, signal);
  paper.onResize(() => {
    layOut();
    draw(); // at once: a canvas that changed its size is empty
  });

  const probe = {
    /** The weight as painted, of level 0; null where that tile is not here or the cell may not be looked at. */
    weight: (query: number, key: number): number | null => {
      if (head === null) return null;
      const at = { ...placeOf(head), level: 0, row: Math.floor(query / TILE), column: Math.floor(key / TILE) };
      const tile = tiles.get(at)?.tile, cell = tile === undefined ? 0 : cellIn(at, tile, query, key);
      return tile === undefined || tile.allowed[cell] === 0 ? null : (tile.max[cell] ?? null);
    },
    /** Where a cell stands in the element, in CSS pixels. */
    cell: (query: number, key: number) => {
      const { camera, box } = lens, inner = plot.getBoundingClientRect(), outer = el.getBoundingClientRect();
      if (camera === null) return null;
      const x = xOf(camera, box, key) + inner.left - outer.left, y = yOf(camera, box, query) + inner.top - outer.top;
      return { x, y, width: camera.scale, height: camera.scale * camera.stretch };
    },
    pixel: pixelAt, // what stands for this weight now
    level: (): number => (lens.camera === null ? 0 : levelOf(lens.camera, paper.ratio())),
    zoom: () => lens.seen(),
    top: (): number | null => by?.top ?? null,
    tiles: (): number => tiles.size,
    settled,
  };
  Object.assign(el, { regard: probe });

  const svg = async (): Promise<string> => {
    await settled();
    if (last === null || head === null) return "";
    const frame = { ...last.frame, hover: NOTHING }, { text } = around.note(say);
    return figure({
      frame, tiles: last.drawn, axes: axesFor(head, frame), facts: last.facts, names: namesFor, ...paper.size(),
      measure, say,
      title: options.title ?? say("map.title", { layer: head.layer, head: head.head }),
      notes: text === "" || options.tiles !== undefined ? [] : [text],
    });
  };
  const table = async (): Promise<readonly (readonly (string | number)[])[]> => {
    await settled();
    const view = lens.seen(), now = head;
    if (now === null || view === null) return [];
    const tileAt = async (row: number, column: number): Promise<Tile> => {
      const at = { ...placeOf(now), level: 0, row, column };
      return tiles.get(at)?.tile ?? ask(at, false, signal);
    };
    return tableOf(
      now, view, choice.drawn.peek().pool, choice.picked.peek().query, tileAt, (query) => rows.get(now, query), say,
    );
  };
  return { probe, svg, table };
}

/** Which cell of a tile holds this weight. */
function cellIn(at: TileAt, tile: Tile, query: number, key: number): number {
  const side = 2 ** at.level;
  const row = Math.floor(query / side) - at.row * TILE, column = Math.floor(key / side) - at.column * TILE;
  return row * tile.columns + column;
}
