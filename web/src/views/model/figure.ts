/** What is seen of the model view, as a figure: pictures as pixels, words as text. */
import { hatchFill, hatchSvg } from "../../paint/hatch";
import { label, type Markup, node, svgDocument } from "../../paint/svg";
import { legendSvg } from "../parts/legend";
import { boxOf } from "./boxes";
import { corner, extent, HEADER, visibleRows } from "./layout";
import { visibleCells, type ModelDrawing, everyHead } from "./paint";
import type { Pictures } from "./pictures";

/** The figure; `notes` stand below it. */
export function figure(drawing: ModelDrawing, pictures: Pictures, notes: readonly string[]): string {
  const { grid, theme, layers, width, left, top } = drawing;
  const height = Math.min(drawing.height, extent(grid).height - top); // no empty space below
  const pictured = new Set<number>(), cells: Markup[] = [];
  for (const { at, x, y } of visibleCells(drawing)) {
    const [, , queries, keys] = layers[at.layer]!.shape, thumbs = pictures.of(at.layer);
    const box = boxOf(grid.cell, queries, keys);
    const place = { x: x + box.x, y: y + box.y, width: box.width, height: box.height };
    if (thumbs !== undefined) {
      pictured.add(at.layer);
      const viewBox = `${at.head * thumbs.columns} 0 ${thumbs.columns} ${thumbs.rows}`;
      cells.push(
        node("rect", { ...place, fill: hatchFill("blocked") }),
        node("svg", { ...place, viewBox, preserveAspectRatio: "none" }, node("use", { href: `#layer-${at.layer}` })),
      );
    }
    cells.push(node("rect", { ...place, fill: "none", stroke: theme.line }));
    if (!grid.sorted) continue;
    const middle = x + grid.cell / 2, below = y + grid.cell;
    cells.push(
      label(middle, below + 10, drawing.value(at), { "text-anchor": "middle", fill: theme.ink }),
      label(middle, below + 24, `${at.layer}·${at.head}`, { "text-anchor": "middle", fill: theme.pale }),
    );
  }
  const images = [...pictured].map((layer) => {
    const thumbs = pictures.of(layer)!;
    return node("image", {
      id: `layer-${layer}`, width: thumbs.heads * thumbs.columns, height: thumbs.rows, "image-rendering": "pixelated",
      href: pictures.strip(layer, drawing.scale, theme.dark)?.toDataURL("image/png") ?? "",
    });
  });
  const words: Markup[] = [];
  if (!grid.sorted) {
    const [first, last] = visibleRows(grid, top, height);
    words.push(
      node("rect", { width: grid.left - 1, height, fill: theme.ground }),
      node("rect", { width, height: HEADER - 1, fill: theme.ground }),
    );
    for (let row = first; row <= last; row++) {
      const y = corner(grid, row, 0).y - top + grid.cell / 2, [name, kind] = drawing.labels[row] ?? ["", ""];
      if (y < HEADER) continue;
      words.push(label(grid.left - 7, y, name, { "text-anchor": "end", fill: theme.ink }));
      if (kind !== "" && grid.cell >= 34)
        words.push(label(grid.left - 7, y + 14, kind, { "text-anchor": "end", fill: theme.pale }));
    }
    for (let head = 0; head < grid.columns; head += everyHead(grid.cell)) {
      const x = corner(grid, 0, head).x - left + grid.cell / 2;
      if (x > grid.left) words.push(label(x, 17, String(head), { "text-anchor": "middle", fill: theme.pale }));
    }
    words.push(label(grid.left - 7, 17, drawing.headWord, { "text-anchor": "end", fill: theme.pale }));
  }
  const whole = height + 30 + notes.length * 17;
  return svgDocument(width, whole, [
    node("rect", { width, height: whole, fill: theme.ground }),
    hatchSvg("blocked", theme),
    node("defs", {}, ...images, node("clipPath", { id: "seen" }, node("rect", { width, height }))),
    node("g", { "clip-path": "url(#seen)" }, ...cells, ...words),
    legendSvg(12, height + 10, "0", String(pictures.top), theme),
    ...notes.map((text, i) => label(12, height + 40 + i * 17, text, { fill: theme.pale })),
  ]);
}
