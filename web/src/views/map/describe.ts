/** Numbers and rows in words. */
import { significant } from "../../paint/digits";
import type { Say } from "../../language/language";
import { placeIn, strongest } from "../../trace/rowFacts";
import type { Row } from "../../trace/source";
import type { AxisNames } from "./names";

/** The most digits, three at most, that fit into a cell; "" where not even one does. */
export function cellText(value: number, width: number, measure: (text: string) => number): string {
  const room = width - (width < 44 ? 6 : 12);
  const short = value === 0 ? [] : [value.toExponential(0)]; // 5e-3 is shorter than 0.005
  const texts = [...[3, 2, 1].map((count) => significant(value, count)), ...short];
  return texts.find((text) => measure(text) <= room) ?? "";
}

const percent = (weight: number): string => significant(100 * weight, weight >= 0.995 ? 3 : 2);

/** A row as a sentence: "猫 looks at cat 91 %, The 5 %". */
export function rowSentence(row: Row, query: number, queries: AxisNames, keys: AxisNames, say: Say): string {
  const shares = strongest(row, 3).map(
    ({ key, weight }) => say("map.share", { key: keys.at(key).full, share: percent(weight) })
  );
  const name = queries.at(query).full;
  return shares.length === 0
    ? say("map.nothing", { query: name })
    : say("map.looks", { query: name, list: shares.join(say("map.comma")) });
}

/** A cell as a sentence, for when the selection moves by keyboard. */
export const cellSentence = (row: Row, query: number, key: number, queries: AxisNames, keys: AxisNames, say: Say): string => {
  const { weight, rank, of, allowed } = placeIn(row, key);
  const about = { query: queries.at(query).full, key: keys.at(key).full, weight: significant(weight, 3), rank, of };
  return allowed ? say("map.cell", about) : say("map.closed", about);
};
