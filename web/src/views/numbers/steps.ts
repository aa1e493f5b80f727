/** What stands on the paper for each step: a sentence, the cell in hand with its numbers, and the tables. */
import { fourDigits } from "../../paint/digits";
import { inBrackets, doAgree, twoDigits } from "./digits";
import { type Child, h } from "../parts/element";
import { mixTable, productTable, softmaxTable, valueTable, weightTable } from "./reckonings";
import { type MatrixOf, type Page, matrix, shownCount, strip } from "./tables";
import { type StepName, type Work, cappedOf, scaledOf, sum } from "./work";

/** The sentence that says what the step does. */
export function aboutOf(step: StepName, work: Work, page: Page): string {
  const { say } = page;
  switch (step) {
    case "dot": return say(work.met ? "numbers.about.dot" : "numbers.about.dot.never");
    case "scale": return say(isRoot(work) ? "numbers.about.scale.root" : "numbers.about.scale.own");
    case "softcap": return say("numbers.about.softcap", { cap: fourDigits(work.numbers.softcap ?? 0) });
    case "mask": return say("numbers.about.mask", { count: work.blockedKeys, keys: work.keys });
    case "softmax": return say(work.blind ? "numbers.about.softmax.blind" : "numbers.about.softmax");
    case "value": return say(work.v ? "numbers.about.value" : "numbers.about.value.unknown");
    default: return say(`numbers.about.${step}`);
  }
}

/** Whether the scale is the usual 1/√d. */
export const isRoot = ({ numbers }: Work): boolean => Math.abs(numbers.scale * Math.sqrt(numbers.d) - 1) < 1e-5;

/** One line of arithmetic; the framed number is the one that goes on to the next step. */
const reckoning = (parts: string, result: string, whole: number | string): HTMLElement =>
  h("p", { class: "reckoning" }, `${parts} = `, h("strong", { class: "hand", title: String(whole) }, result));

/** Says whether two ways to one number agree. */
export function check(name: string, mine: number, theirs: number, size: number, page: Page): HTMLElement {
  const same = doAgree(mine, theirs, size);
  const words = same ? page.say("numbers.same") : page.say(
    "numbers.differs", { difference: twoDigits(Math.abs(mine - theirs)) },
  );
  return h(
    "p", { class: same ? "check" : "check wrong", title: `${mine}, ${theirs}` },
    `${same ? "✓" : "≠"} ${name}: ${fourDigits(mine)}, ${fourDigits(theirs)}; ${words}`,
  );
}

/** All that stands below the formula of a step. */
export function bodyOf(step: StepName, work: Work, page: Page): Child[] {
  const body = TABLES[step](work, page);
  const last = work.steps.findLast((one) => one === "dot" || one === "scale" || one === "softcap" || one === "bias");
  if (step === last && step !== "dot") { // here the score is complete: is it the one that the map uses?
    const mine = work.capped! + (work.bias ?? 0), size = Math.abs(work.capped!) + Math.abs(work.bias ?? 0);
    body.splice(1, 0, check("s", mine, work.score!, size, page));
  }
  return body;
}

type TablesOf = (work: Work, page: Page) => Child[];

/** A number of each cell of the map, from an array of them. */
const cellOf = ({ numbers }: Work, values: Float32Array) => (r: number, c: number): number =>
  values[r * numbers.columns.length + c]!;

/** A matrix of the whole map, where it is small enough to be shown. */
const wholeMap = (
  name: string, work: Work, page: Page, value: MatrixOf["value"], more: Partial<MatrixOf> = {},
): Child => work.whole && matrix(cellsOf(name, work, value, more), page);

/** The score of each cell before its bias. */
const cappedAt = (work: Work) => (r: number, c: number): number =>
  cappedOf(work.numbers, scaledOf(work.numbers, cellOf(work, work.numbers.dot!)(r, c)));

const scoreTables: TablesOf = (work, page) => [
  reckoning("s", fourDigits(work.score!), work.score!),
  wholeMap("s", work, page, cellOf(work, work.numbers.scores!)),
];

const weightTables: TablesOf = (work, page) => [
  reckoning("w", fourDigits(work.weight), work.weight),
  wholeMap("w", work, page, cellOf(work, work.numbers.weights), { strength: 1 }),
  !work.whole && weightTable(work, page),
];

const queryTables: TablesOf = (work, page) => {
  const { q, d } = work.numbers;
  return [work.whole ? matrix(rowsOf("Q", work, "query", q!, d, work.r, page), page) : strip(work.q!, page)];
};

const keyTables: TablesOf = (work, page) => {
  const { k, d } = work.numbers;
  return [work.whole ? matrix(rowsOf("K", work, "key", k!, d, work.c, page), page) : strip(work.k!, page)];
};

const dotTables: TablesOf = (work, page) => {
  const { products } = work, dotAt = cellOf(work, work.numbers.dot!);
  const size = products ? sum(products.map(Math.abs)) : 0;
  return [
    products && productTable(work, page),
    products && check("∑ q k, q · k", sum(products), dotAt(work.r, work.c), size, page),
    wholeMap("Q Kᵀ", work, page, dotAt),
  ];
};

const scaleTables: TablesOf = (work, page) => {
  const { numbers } = work, dotAt = cellOf(work, numbers.dot!), dot = dotAt(work.r, work.c);
  const by = isRoot(work) ? `${fourDigits(dot)} / √${numbers.d}` : `${fourDigits(dot)} × ${inBrackets(numbers.scale)}`;
  return [
    reckoning(by, fourDigits(work.scaled!), work.scaled!),
    wholeMap("s", work, page, (r, c) => scaledOf(numbers, dotAt(r, c))),
  ];
};

const softcapTables: TablesOf = (work, page) => {
  const cap = fourDigits(work.numbers.softcap!);
  return [
    reckoning(`${cap} · tanh(${fourDigits(work.scaled!)} / ${cap})`, fourDigits(work.capped!), work.capped!),
    wholeMap("s", work, page, cappedAt(work)),
  ];
};

const biasTables: TablesOf = (work, page) => {
  const biasAt = cellOf(work, work.numbers.bias!), before = cappedAt(work), sum = work.capped! + work.bias!;
  return [
    reckoning(`${fourDigits(work.capped!)} + ${inBrackets(work.bias!)}`, fourDigits(sum), sum),
    wholeMap("b", work, page, biasAt),
    wholeMap("s", work, page, (r, c) => before(r, c) + biasAt(r, c)),
  ];
};

const maskTables: TablesOf = (work, page) => {
  const result = work.allowed ? fourDigits(work.score!) : "-∞";
  const words = work.allowed ? result : `${result} (${page.say("numbers.blocked")})`;
  const about = { class: work.allowed ? "hand" : "hand blocked", title: work.allowed ? String(work.score) : result };
  return [
    h("p", { class: "reckoning" }, "s = ", h("strong", about, words)),
    wholeMap("s", work, page, cellOf(work, work.numbers.scores!), { open: openOf(work), closed: "-∞" }),
  ];
};

const softmaxTables: TablesOf = (work, page) => {
  if (work.blind) return [];
  const { total, highest, weights } = work.numbers;
  const power = work.allowed ? `exp(${fourDigits(work.score!)} − ${inBrackets(highest![work.r]!)})` : "0";
  return [
    reckoning(`${power} / ${fourDigits(total![work.r]!)}`, fourDigits(work.weight), work.weight),
    softmaxTable(work, page),
    wholeMap("w", work, page, cellOf(work, weights), { open: openOf(work), closed: "0", strength: 1 }),
  ];
};

const valueTables: TablesOf = (work, page) => {
  const { v, e } = work.numbers;
  return work.v
    ? [valueTable(work, page), work.whole && matrix(rowsOf("V", work, "key", v!, e, work.c, page), page)]
    : [];
};

const mixTables: TablesOf = (work, page) => {
  const { kernel, mix, e } = work.numbers, difference = kernel && kernelDifference(work);
  const words = difference === null ? page.say("numbers.noKernel")
    : page.say("numbers.kernelSays", { difference: twoDigits(difference) });
  return [
    mixTable(work, page),
    h("p", { class: difference === null ? "pale" : "check" }, words),
    work.whole && matrix(rowsOf("mix", work, "query", mix!, e, work.r, page), page),
  ];
};

const TABLES: Readonly<Record<StepName, TablesOf>> = {
  stored: () => [], score: scoreTables, weight: weightTables, q: queryTables, k: keyTables, dot: dotTables,
  scale: scaleTables, softcap: softcapTables, bias: biasTables, mask: maskTables, softmax: softmaxTables,
  value: valueTables, mix: mixTables,
};

/** The largest difference between the mix on this paper and what the model's kernel gave. */
export function kernelDifference({ numbers, mix }: Work): number {
  let most = 0;
  mix?.forEach((value, i) => {
    most = Math.max(most, Math.abs(value - (numbers.kernel?.[i] ?? value)));
  });
  return most;
}

const openOf = ({ numbers }: Work) => (r: number, c: number): boolean =>
  numbers.allowed[r * numbers.columns.length + c] !== 0;

/** A matrix of the map's cells. */
const cellsOf = (name: string, work: Work, value: MatrixOf["value"], more: Partial<MatrixOf>): MatrixOf => ({
  name, rows: [...work.numbers.rows], rowKind: "query", columns: [...work.numbers.columns], columnKind: "key",
  width: work.numbers.columns.length, value, hand: [work.r, work.c], strength: 0.45, ...more,
});

/** A matrix of vectors, one line per token. */
function rowsOf(
  name: string, work: Work, kind: "query" | "key", values: Float32Array, width: number, hand: number, page: Page,
): MatrixOf {
  return {
    name, rows: [...(kind === "query" ? work.numbers.rows : work.numbers.columns)], rowKind: kind,
    columns: Array.from({ length: shownCount(width, page.open) }, (_, i) => i), columnKind: "channel", width,
    value: (r, c) => values[r * width + c]!, hand: [hand, -1], strength: 0.45,
  };
}
