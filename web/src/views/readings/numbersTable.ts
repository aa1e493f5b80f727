/** The numbers of both models in one table: of all heads, as measured when the models ran, and of this head. */
import { fewDigits } from "../../paint/digits";
import type { Key, Say } from "../../language/language";
import type { Reading } from "../../trace/reading";
import { h } from "../parts/element";
import type { HeadNumbers } from "./headNumbers";
import { countText, shareText } from "./words";

/** One number of a model. `all` is over all heads, `head` of the one in hand where that has it. */
interface NumberRow {
  readonly key: Key;
  readonly values?: Readonly<Record<string, string | number>>;
  readonly all: (reading: Reading, say: Say) => string | null;
  readonly head?: keyof HeadNumbers;
  readonly raw: (reading: Reading) => number | string | null; // for a table in a file
}

const share = (name: "mayLook" | "back" | "itself" | "ahead", key: Key): NumberRow =>
  ({ key, all: (one) => shareText(one[name]), head: name, raw: (one) => one[name] });
const plain = (name: "distance" | "entropy", key: Key): NumberRow =>
  ({ key, all: (one) => fewDigits(one[name]), head: name, raw: (one) => one[name] });
const objective = ({ objective }: Reading): Key => `readings.predicts.${objective ?? "none"}`;

const given = <T, U>(value: T | null, show: (value: T) => U): U | null => (value === null ? null : show(value));
const perplexity = (logProb: number): number => Math.exp(-logProb);

const ROWS: readonly NumberRow[] = [
  { key: "readings.row.objective", all: (one, say) => say(objective(one)), raw: (one) => one.objective },
  { key: "readings.row.parameters", all: (one) => countText(one.parameters), raw: (one) => one.parameters },
  { key: "readings.row.heads", all: headsText, raw: headsText },
  { key: "readings.row.tokens", all: (one) => countText(one.tokens), raw: (one) => one.tokens },
  share("mayLook", "readings.row.may"), share("back", "readings.row.back"), share("itself", "readings.row.itself"),
  share("ahead", "readings.row.ahead"), plain("distance", "readings.row.distance"),
  plain("entropy", "readings.row.entropy"),
  { key: "readings.row.change", all: (one) => fewDigits(one.changeBefore), raw: (one) => one.changeBefore },
  { key: "readings.row.logprob", all: (one) => given(one.logProb, fewDigits), raw: (one) => one.logProb },
  { key: "readings.row.perplexity", all: perplexityText, raw: (one) => given(one.logProb, perplexity) },
];

/** A row of what only some readings have. */
const of = <Part extends "common" | "writing", T extends number | string>(
  part: Part, take: (found: NonNullable<Reading[Part]>) => T, show: (value: T) => string, key: Key,
): NumberRow => {
  const raw = (one: Reading): T | null => given(one[part] as NonNullable<Reading[Part]> | null, take);
  return { key, raw, all: (one) => given(raw(one), show) };
};

/** Those over the tokens that both guess, and what it cost to write; where there are any. */
function laterRows(readings: readonly Reading[]): readonly NumberRow[] {
  const tokens = readings.find((one) => one.common)?.common?.tokens;
  const count = readings.find((one) => one.writing)?.writing?.tokens;
  const common: readonly NumberRow[] = tokens === undefined ? [] : [
    { ...of("common", ({ logProb }) => logProb, fewDigits, "readings.row.common"), values: { count: tokens } },
    of("common", ({ first }) => first, shareText, "readings.row.first"),
  ];
  const writing: readonly NumberRow[] = count === undefined ? [] : [
    { ...of("writing", ({ positions }) => positions, countText, "readings.row.positions"), values: { count } },
    of("writing", ({ seconds }) => 1000 * seconds, fewDigits, "readings.row.seconds"),
    of("writing", ({ text }) => text, (text) => text, "readings.row.written"),
  ];
  return [...common, ...writing];
}

function headsText({ layers, heads }: Reading): string {
  return new Set(heads).size === 1 ? `${layers} × ${heads[0]}` : heads.join(" + ");
}

function perplexityText({ logProb, objective }: Reading, say: Say): string | null {
  if (logProb === null) return null;
  const value = fewDigits(perplexity(logProb));
  return objective === "masked" ? say("readings.pseudo", { value }) : value;
}

/** A model in the table; its numbers of this head are null while they are on their way. */
export interface Column {
  readonly title: string;
  readonly reading: Reading | undefined;
  readonly head: HeadNumbers | null;
}

const wordsOf = (row: NumberRow, say: Say): string => say(row.key, row.values);
const rowsOf = (columns: readonly Column[]): readonly NumberRow[] =>
  [...ROWS, ...laterRows(columns.flatMap(({ reading }) => reading ?? []))];

/** The table as elements. */
export function numbersTable(columns: readonly Column[], say: Say): HTMLElement {
  const heading = (key: Key): HTMLElement => h("th", { scope: "col" }, say(key));
  const titles = columns.map(({ title }) => h("th", { scope: "colgroup", colspan: 2 }, h("bdi", {}, title)));
  const parts = columns.flatMap(() => [heading("readings.all"), heading("readings.this")]);
  const lines = rowsOf(columns).map((row) => h(
    "tr", { "data-row": row.key.replace("readings.row.", "") }, h("th", { scope: "row" }, wordsOf(row, say)),
    ...columns.flatMap((column) => cellsOf(row, column, say)),
  ));
  const top = h("thead", {}, h("tr", {}, h("td", { rowspan: 2 }), ...titles), h("tr", {}, ...parts));
  return h("table", {}, top, h("tbody", {}, ...lines));
}

/** The cells of a model in a row: over all heads, and of this head where it has the number. */
function cellsOf({ all, head, raw }: NumberRow, { reading, head: numbers }: Column, say: Say): HTMLElement[] {
  const text = (reading && all(reading, say)) ?? "–", value = reading ? raw(reading) : null;
  const exact = (number: unknown): string | null => (typeof number === "number" ? String(number) : null);
  const whole = h("td", { colspan: head ? 1 : 2, title: exact(value) }, h("bdi", {}, text));
  if (!head) return [whole];
  const found = numbers?.[head], isPlain = head === "distance" || head === "entropy";
  const shown = found === undefined ? "…" : isPlain ? fewDigits(found) : shareText(found);
  return [whole, h("td", { class: "pale", title: exact(found) }, shown)];
}

/** The same as lines of a file: names, then one line per number. */
export function numbersLines(columns: readonly Column[], say: Say): (string | number)[][] {
  const kinds = [say("readings.all"), say("readings.this")];
  const names = columns.flatMap(({ title }) => kinds.map((kind) => `${title}: ${kind}`));
  const lines = rowsOf(columns).map((row) => [wordsOf(row, say), ...columns.flatMap(({ reading, head }) => [
    (reading ? row.raw(reading) : null) ?? "", (row.head && head?.[row.head]) ?? "",
  ])]);
  return [["", ...names], ...lines];
}
