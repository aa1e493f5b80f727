/** What stands on the paper for each step: a sentence, the cell in hand with its numbers, and the tables. */
import { fourDigits } from "../../paint/digits";
import { after, agree, roughly } from "./digits";
import { type Child, h } from "../parts/element";
import { mixTable, productTable, softmaxTable, valueTable, weightTable } from "./reckonings";
import { type MatrixOf, type Page, matrix, shownOf, strip } from "./tables";
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
  const same = agree(mine, theirs, size);
  const words = same ? page.say("numbers.same") : page.say(
    "numbers.differs", { difference: roughly(Math.abs(mine - theirs)) },
  );
  return h(
    "p", { class: same ? "check" : "check wrong", title: `${mine}, ${theirs}` },
    `${same ? "✓" : "≠"} ${name}: ${fourDigits(mine)}, ${fourDigits(theirs)}; ${words}`,
  );
}

/** All that stands below the formula of a step. */
export function bodyOf(step: StepName, work: Work, page: Page): Child[] {
  const body = tablesOf(step, work, page);
  const last = work.steps.findLast((one) => one === "dot" || one === "scale" || one === "softcap" || one === "bias");
  if (step === last && step !== "dot") { // here the score is complete: is it the one that the map uses?
    const mine = work.capped! + (work.bias ?? 0), size = Math.abs(work.capped!) + Math.abs(work.bias ?? 0);
    body.splice(1, 0, check("s", mine, work.score!, size, page));
  }
  return body;
}

function tablesOf(step: StepName, work: Work, page: Page): Child[] {
  const { numbers } = work;
  const dotAt = (r: number, c: number): number => numbers.dot![r * numbers.columns.length + c]!;
  const biasAt = (r: number, c: number): number => numbers.bias![r * numbers.columns.length + c]!;
  const whole = (name: string, value: MatrixOf["value"], more: Partial<MatrixOf> = {}): Child =>
    work.whole && matrix(cellsOf(name, work, value, more), page);
  switch (step) {
    case "stored": case "score": case "weight": {
      const score = step === "score";
      const values = score ? numbers.scores! : numbers.weights;
      const at = (r: number, c: number): number => values[r * numbers.columns.length + c]!;
      if (step === "stored") return [];
      const value = score ? work.score! : work.weight;
      return [
        reckoning(score ? "s" : "w", fourDigits(value), value),
        whole(score ? "s" : "w", at, score ? {} : { strength: 1 }),
        !score && !work.whole && weightTable(work, page),
      ];
    }
    case "q":
      return [
        work.whole ? matrix(
          rowsOf("Q", work, "query", numbers.q!, numbers.d, work.r, page), page,
        ) : strip(work.q!, page),
      ];
    case "k":
      return [
        work.whole ? matrix(rowsOf("K", work, "key", numbers.k!, numbers.d, work.c, page), page) : strip(work.k!, page),
      ];
    case "dot": {
      const dot = dotAt(work.r, work.c), size = work.products ? sum(work.products.map(Math.abs)) : 0;
      return [
        work.products && productTable(work, page),
        work.products && check("∑ q k, q · k", sum(work.products), dot, size, page),
        whole("Q Kᵀ", dotAt),
      ];
    }
    case "scale": {
      const dot = dotAt(work.r, work.c);
      const by = isRoot(work) ? `${fourDigits(dot)} / √${numbers.d}` : `${fourDigits(dot)} × ${after(numbers.scale)}`;
      return [
        reckoning(by, fourDigits(work.scaled!), work.scaled!), whole("s", (r, c) => scaledOf(numbers, dotAt(r, c))),
      ];
    }
    case "softcap": {
      const cap = fourDigits(numbers.softcap!);
      return [
        reckoning(`${cap} · tanh(${fourDigits(work.scaled!)} / ${cap})`, fourDigits(work.capped!), work.capped!),
        whole("s", (r, c) => cappedOf(numbers, scaledOf(numbers, dotAt(r, c)))),
      ];
    }
    case "bias":
      return [
        reckoning(
          `${fourDigits(work.capped!)} + ${after(work.bias!)}`, fourDigits(work.capped! + work.bias!),
          work.capped! + work.bias!,
        ),
        whole("b", biasAt),
        whole("s", (r, c) => cappedOf(numbers, scaledOf(numbers, dotAt(r, c))) + biasAt(r, c)),
      ];
    case "mask": {
      const result = work.allowed ? fourDigits(work.score!) : "-∞";
      const words = work.allowed ? result : `${result} (${page.say("numbers.blocked")})`;
      return [
        h(
          "p", { class: "reckoning" }, "s = ",
          h(
            "strong",
            { class: work.allowed ? "hand" : "hand blocked", title: work.allowed ? String(work.score) : result }, words,
          ),
        ),
        whole("s", (r, c) => numbers.scores![r * numbers.columns.length + c]!, { open: openOf(work), closed: "-∞" }),
      ];
    }
    case "softmax": {
      if (work.blind) return [];
      const w = (r: number, c: number): number => numbers.weights[r * numbers.columns.length + c]!;
      const total = numbers.total![work.r]!;
      const power = work.allowed ? `exp(${fourDigits(work.score!)} − ${after(numbers.highest![work.r]!)})` : "0";
      return [
        reckoning(`${power} / ${fourDigits(total)}`, fourDigits(work.weight), work.weight),
        softmaxTable(work, page),
        whole("w", w, { open: openOf(work), closed: "0", strength: 1 }),
      ];
    }
    case "value":
      return work.v ? [
        valueTable(work, page),
        work.whole && matrix(rowsOf("V", work, "key", numbers.v!, numbers.e, work.c, page), page),
      ] : [];
    case "mix": {
      const kernel = numbers.kernel && kernelDifference(work);
      return [
        mixTable(work, page),
        h(
          "p", { class: kernel === null ? "pale" : "check" },
          kernel === null ? page.say("numbers.noKernel") : page.say(
            "numbers.kernelSays", { difference: roughly(kernel) },
          ),
        ),
        work.whole && matrix(rowsOf("mix", work, "query", numbers.mix!, numbers.e, work.r, page), page),
      ];
    }
  }
}

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
    columns: Array.from({ length: shownOf(width, page.open) }, (_, i) => i), columnKind: "channel", width,
    value: (r, c) => values[r * width + c]!, hand: [hand, -1], strength: 0.45,
  };
}
