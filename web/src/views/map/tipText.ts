/** The words of the tooltip: exact numbers of one weight and, in a pooled map, of the pixel that it is part of. */
import { significant } from "../../paint/digits";
import { placeIn } from "../../trace/rowFacts";
import type { Row } from "../../trace/source";
import type { Say } from "../../language/language";
import type { Hit } from "./hit";
import type { AxisNames } from "./names";
import type { TipLine, TipText } from "./tip";

/** A pixel and the weights that it stands for. */
export interface Pixel {
  readonly value: number;
  readonly level: number;
  readonly allowed: boolean;
}

export interface TipAbout {
  readonly hit: Hit;
  readonly queries: AxisNames;
  readonly keys: AxisNames;
  readonly row: Row | null; // null: not here yet, or not asked
  readonly pixel: Pixel | null;
  readonly pool: "max" | "mean";
  readonly difference: boolean;
  readonly padding: boolean;
  readonly say: Say;
}

export function tipText({ hit, queries, keys, row, pixel, pool, difference, padding, say }: TipAbout): TipText {
  const named = (names: AxisNames, i: number): string =>
    (names.at(i).full === String(i) ? `${i}` : `${names.at(i).full} #${i}`);
  const query = hit.query === null ? null : named(queries, hit.query);
  const key = hit.key === null ? null : named(keys, hit.key);
  if (hit.query === null || hit.key === null) return { query, key, lines: [] };
  const lines: TipLine[] = [];
  const one = pixel !== null && pixel.level === 0 ? pixel : null;
  const closed = row !== null ? row.allowed[hit.key] === 0 : one !== null && !one.allowed;
  if (closed) return { query, key, lines: [{ name: say(padding ? "map.padding" : "map.blocked"), value: "" }] };
  if (difference) {
    if (one !== null) lines.push({ name: say("map.difference"), value: significant(one.value, 6) });
  } else {
    const known = row === null ? null : placeIn(row, hit.key), waiting = say("map.waiting");
    lines.push({
      name: say("weight"),
      value: known !== null ? significant(known.weight, 6) : one !== null ? significant(one.value, 6) : waiting,
    });
    if (known === null || known.score !== null)
      lines.push({ name: say("score"), value: known === null ? waiting : significant(known.score!, 5) });
    lines.push({
      name: say("rank"), value: known === null ? waiting : say("map.rank", { rank: known.rank, of: known.of }),
    });
  }
  if (pixel !== null && pixel.level > 0)
    lines.push(pooled(pixel, hit.query, hit.key, queries.count, keys.count, pool, say));
  return { query, key, lines };
}

function pooled(
  { value, level }: Pixel, query: number, key: number, queries: number, keys: number, pool: "max" | "mean", say: Say,
): TipLine {
  const side = 2 ** level, top = Math.floor(query / side) * side, left = Math.floor(key / side) * side;
  const range = { top, left, bottom: Math.min(queries, top + side) - 1, right: Math.min(keys, left + side) - 1 };
  return {
    name: say(pool === "max" ? "map.rangelargest" : "map.rangemean"),
    value: `${significant(value, 4)} (${say("map.range", range)})`,
  };
}
