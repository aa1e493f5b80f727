/** What is seen of the heads view, as a figure with real text. */
import { headColor } from "../../paint/color";
import { type Markup, label, node, svgDocument } from "../../paint/svg";
import { aside, ending, HEADER, middle, type Sight, visibleQueries } from "./layout";
import { dashOf, type HeadsDrawing, isLit, shades, strokeOf } from "./paint";

function lineOf(drawing: HeadsDrawing, line: HeadsDrawing["lines"][number], sight: Sight): Markup {
  const { left, right } = sight;
  const off = aside(sight, drawing.heads, line.head), end = ending(sight, line.key);
  const third = (right - left) / 3, from = middle(sight, line.query) + off, to = end.y + off;
  const { width, alpha } = strokeOf(line.weight, isLit(line, drawing.lit));
  const place = (x: number, y: number): string => `${x.toFixed(1)} ${y.toFixed(1)}`;
  const curve = [[left + third, from], [right - third, to], [right - 4, to]] as const;
  return node("path", {
    d: `M${place(left + 4, from)}C${curve.map(([x, y]) => place(x, y)).join(" ")}`,
    stroke: headColor(line.head, drawing.theme.dark), fill: "none", "stroke-width": width,
    "stroke-opacity": end.outside ? alpha / 2 : alpha, "stroke-dasharray": dashOf(line.head).join(" ") || null,
  });
}

function namesOf(drawing: HeadsDrawing, side: "query" | "key", sight: Sight): Markup[] {
  const { theme, heads } = drawing;
  const names = side === "query" ? drawing.queries : drawing.keys;
  const width = side === "query" ? sight.queryWidth : sight.keyWidth;
  const start = side === "query" ? sight.left - width : sight.right;
  const shaded = shades(drawing.lines, drawing.lit, heads);
  const [first, last] = visibleQueries(sight, names.count), high = Math.min(28, sight.row);
  const out: Markup[] = [];
  for (let place = first; place <= last; place++) {
    const y = middle(sight, place), weights = shaded.side === side ? shaded.of.get(place) : undefined;
    weights?.forEach((weight, i) => {
      if (weight > 0)
        out.push(node("rect", {
          x: start + (i * width) / heads.length, y: y - high / 2 + 1, width: width / heads.length, height: high - 2,
          fill: headColor(heads[i]!, theme.dark), "fill-opacity": 0.06 + 0.34 * Math.min(1, weight),
        }));
    });
    out.push(label(side === "query" ? sight.left - 6 : sight.right + 6, y + 4.5, names.short(place, width - 12), {
      "text-anchor": side === "query" ? "end" : "start", "font-size": 13, direction: "ltr",
      fill: drawing.without.has(place) && side === "key" ? theme.pale : weights === undefined ? theme[side] : theme.ink,
      "text-decoration": drawing.without.has(place) && side === "key" ? "line-through" : null,
    }));
  }
  return out;
}

/** The part that is seen, the heads with their colours below it, and what a reader must know. */
export function figure(drawing: HeadsDrawing, notes: readonly string[], headWord: string): string {
  const { sight: whole, theme, heads, words } = drawing;
  const [, lastQuery] = visibleQueries(whole, whole.queries), [, lastKey] = visibleQueries(whole, whole.keys);
  const bottom = Math.min(whole.height, middle(whole, Math.max(lastQuery, lastKey)) + whole.row / 2 + 2);
  const sight = { ...whole, height: bottom };
  const legend = heads.flatMap((head, i) => {
    const x = 12 + (i % 12) * 70, y = bottom + 16 + Math.floor(i / 12) * 18;
    return [
      node("rect", { x, y, width: 10, height: 10, fill: headColor(head, theme.dark) }),
      label(x + 14, y + 9, `${headWord} ${head}`, { fill: theme.ink }),
    ];
  });
  const rising = [...drawing.lines].sort((a, b) => a.weight - b.weight); // the largest on top
  const below = bottom + 20 + Math.ceil(heads.length / 12) * 18;
  const width = Math.max(whole.width, 24 + Math.min(12, heads.length) * 70);
  return svgDocument(width, below + notes.length * 17 + 6, [
    node("rect", { width, height: below + notes.length * 17 + 6, fill: theme.ground }),
    node("defs", {}, node("clipPath", { id: "seen" }, node("rect", { y: HEADER, width, height: bottom - HEADER }))),
    node("g", { "clip-path": "url(#seen)" }, ...rising.map((line) => lineOf(drawing, line, sight))),
    node("g", { "clip-path": "url(#seen)" }, ...namesOf(drawing, "query", sight), ...namesOf(drawing, "key", sight)),
    label(sight.left - 6, 19, words.queries, { "text-anchor": "end", "font-weight": 600, fill: theme.query }),
    label(sight.right + 6, 19, words.keys, { "font-weight": 600, fill: theme.key }),
    ...legend,
    ...notes.map((words, i) => label(12, below + 12 + i * 17, words, { fill: theme.pale })),
  ]);
}
