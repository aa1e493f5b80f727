/** What can be taken along of a map panel: its numbers as drawn, a picture, a table. */
import { NOTHING } from "../../choose/choice";
import type { ViewExports } from "../parts/view";
import { figure } from "./figure";
import { levelOf, xOf, yOf } from "./geometry";
import type { PanelPainter } from "./panelDraw";
import type { PanelState } from "./panelState";
import type { Stage } from "./stage";
import { type Cells, tableOf } from "./table";

/** Numbers as drawn, for whoever checks them. */
export type MapProbe = ReturnType<typeof panelProbe>;

/** What a panel gives: like every view, with a probe whose functions are known. */
export interface MapExports extends ViewExports {
  readonly probe: MapProbe;
  readonly svg: () => Promise<string>;
}

export function panelProbe(state: PanelState, stage: Stage, painter: PanelPainter, el: HTMLElement) {
  const { lens } = state, { paper, plot } = stage;
  return {
    weight: (query: number, key: number) => state.weightAt(query, key),
    /** Where a cell stands in the element, in CSS pixels. */
    cell: (query: number, key: number) => {
      const { camera, box } = lens, inner = plot.getBoundingClientRect(), outer = el.getBoundingClientRect();
      if (camera === null) return null;
      const x = xOf(camera, box, key) + inner.left - outer.left, y = yOf(camera, box, query) + inner.top - outer.top;
      return { x, y, width: camera.scale, height: camera.scale * camera.stretch };
    },
    pixel: state.pixelAt,
    level: () => (lens.camera === null ? 0 : levelOf(lens.camera, paper.ratio())),
    zoom: () => lens.seen(),
    top: () => painter.colours.current?.top ?? null,
    tiles: () => state.tiles.size,
    settled: state.frames.settled,
  };
}

/** The map as SVG, once all of it is drawn; "" where there is nothing. */
export async function panelSvg(state: PanelState, stage: Stage, painter: PanelPainter): Promise<string> {
  await state.frames.settled();
  const { painted, head, scene, options, showsWeights } = state, { say } = scene;
  if (painted === null || head === null) return "";
  const frame = { ...painted.frame, hover: NOTHING }, { text } = state.around.note(say);
  return figure({
    frame, tiles: painted.tiles, axes: painter.axesFor(head, frame), facts: painted.facts, names: painter.namesFor,
    ...stage.paper.size(), measure: painter.measure, say,
    title: options.title ?? say("map.title", { layer: head.layer, head: head.head }),
    notes: text !== "" && showsWeights ? [text] : [],
  });
}

/** What is in sight as a table, or where that is too much, the row that is picked. */
export async function panelTable(state: PanelState): Promise<Cells> {
  await state.frames.settled();
  const { head, lens, rows, scene } = state, view = lens.seen(), { choice, say } = scene;
  if (head === null || view === null) return [];
  return tableOf(
    head, view, choice.drawn.peek().pool, choice.picked.peek().query,
    (row, column) => state.exactTile(head, row, column), (query) => rows.get(head, query), say,
  );
}
