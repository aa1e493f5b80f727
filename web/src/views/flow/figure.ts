/** What is seen of the flow view, as a figure with real text. */
import { shortShare } from "../../paint/digits";
import { scaleWeight, weightColor } from "../../paint/color";
import { hatchFill, hatchSvg } from "../../paint/hatch";
import { label, type Markup, node, svgDocument } from "../../paint/svg";
import { largest, lineOf } from "./requests";
import { BARS, visibleColumns, edgeOf, everyName, UPRIGHT } from "./layout";
import { barsOf, barTop, type FlowDrawing } from "./paint";

/** The columns that are seen and all lines; `notes` stand below. */
export function figure(drawing: FlowDrawing, notes: readonly string[]): string {
  const { plan, flow, theme, width, left, query, labels, words, names, raw, scale } = drawing;
  const tops = labels.map((_, line) => largest(flow, line));
  const most = barTop(drawing);
  const inside: Markup[] = [], above: Markup[] = [], beside: Markup[] = [];
  for (const part of plan.parts) {
    const [first, last] = visibleColumns(plan, part, left, width), each = everyName(plan.column);
    const lines = labels.map((_, line) => lineOf(flow, part.name, line));
    const ranks = scale === "rank" ? lines.map((shares) => Float32Array.from(shares).sort()) : null;
    const heading = { "font-weight": 600, fill: theme.ink };
    if (plan.parts.length > 1) above.push(label(Math.max(plan.left, part.start - left), 14, words[part.name], heading));
    for (let token = first; token <= last; token++) {
      const x = part.start + token * plan.column - left, traced = part.name === "target" && token === query;
      for (let line = 0; line < plan.lines; line++) {
        const t = scaleWeight(lines[line]![token]!, scale, tops[line]!, ranks?.[line]);
        const y = plan.top + line * plan.line + 1, fill = weightColor(t, theme.dark);
        if (t > 0) inside.push(node("rect", { x, y, width: plan.column, height: plan.line - 2, fill }));
      }
      (["rollout", "raw"] as const).forEach((which, i) => {
        const values = barsOf(drawing, which, part.name), base = plan.bars[i]! + BARS;
        const width = Math.max(1, plan.column - 1);
        if (values === null) return;
        if (which === "raw" && raw?.allowed[token] === 0)
          inside.push(node("rect", { x, y: base - BARS, width, height: BARS, fill: hatchFill("blocked") }));
        else if (values[token]! > 0) {
          const height = (values[token]! / most) * BARS;
          inside.push(node("rect", { x, y: base - height, width, height, fill: weightColor(0.72, theme.dark) }));
        }
      });
      if (token % each !== 0 && !traced) continue;
      const level = plan.column >= UPRIGHT, middle = x + plan.column / 2, y = plan.top - (level ? 9 : 6);
      above.push(label(middle, y, names[part.name].short(token, level ? plan.column - 6 : plan.name), {
        fill: traced ? theme.query : theme.key, "font-weight": traced ? 600 : null, direction: "ltr",
        "text-anchor": level ? "middle" : null,
        transform: level ? null : `rotate(-60 ${middle.toFixed(1)} ${y.toFixed(1)})`,
      }));
    }
  }
  for (let line = 0; line < plan.lines; line++) {
    const y = plan.top + (line + 0.5) * plan.line + 4;
    const fill = line === plan.lines - 1 ? theme.query : theme.ink;
    beside.push(
      label(plan.left - 8, y, labels[line] ?? "", { "text-anchor": "end", fill }),
      label(edgeOf(plan, width) + 8, y, shortShare(largest(flow, line)), { fill: theme.pale }),
    );
  }
  beside.push(
    label(8, plan.bars[0] - 8, words.rollout, { fill: theme.ink }),
    label(8, plan.bars[1] - 8, words.raw, { fill: theme.ink }),
    label(edgeOf(plan, width) + 8, plan.top - 9, words.largest, { fill: theme.pale }),
  );
  const shown = node("rect", { x: plan.left, width: edgeOf(plan, width) - plan.left, height: plan.height });
  const height = plan.height + 8 + notes.length * 17;
  return svgDocument(width, height, [
    node("rect", { width, height, fill: theme.ground }),
    hatchSvg("blocked", theme),
    node("defs", {}, node("clipPath", { id: "seen" }, shown)),
    node("g", { "clip-path": "url(#seen)" }, ...inside),
    ...above, ...beside,
    ...notes.map((text, i) => label(12, plan.height + 14 + i * 17, text, { fill: theme.pale })),
  ]);
}
