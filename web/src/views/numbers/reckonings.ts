/** The longer sums of the paper, written out: products by channel, the softmax of a row, and the mix of its values. */
import { fourDigits } from "../../paint/digits";
import { h } from "../parts/element";
import { type Page, cell, inFigure, lines, nameCell, shownCount, tint } from "./tables";
import { type Work, sum } from "./work";

const pale = (text: string): HTMLElement => h("th", { scope: "row", class: "pale" }, text);
const empty = (): HTMLElement => h("td", {});

/** Channel by channel: q, k, their product; the rest together; the sum. */
export function productTable(work: Work, page: Page): HTMLElement {
  const { say } = page;
  const q = work.q!, k = work.k!, products = work.products!;
  const count = shownCount(products.length, page.open);
  const body = Array.from(
    { length: count }, (_, c) => h("tr", {}, pale(String(c + 1)), cell(q[c]!), cell(k[c]!), cell(products[c]!)),
  );
  if (count < products.length) {
    const rest = sum(products.subarray(count));
    body.push(
      h(
        "tr", { class: "rest" }, pale(say("numbers.more", { count: products.length - count })), empty(), empty(),
        cell(rest),
      )
    );
  }
  body.push(h("tr", { class: "sum" }, pale(say("numbers.sum")), empty(), empty(), cell(sum(products), "hand")));
  return inFigure("q · k", lines([say("numbers.channel"), "q", "k", "q × k"], body));
}

/** The keys of the row: score, score less the largest, power of e, share; then the others, the sink, the total. */
export function softmaxTable(work: Work, page: Page): HTMLElement {
  const { say } = page;
  const { numbers, r, row } = work;
  const highest = numbers.highest![r]!, total = numbers.total![r]!, width = numbers.columns.length;
  const shown = new Set(numbers.columns);
  const powers: number[] = [], shares: number[] = [];
  const body = Array.from(numbers.columns, (key, c) => {
    const open = numbers.allowed[r * width + c] !== 0, weight = numbers.weights[r * width + c]!;
    const score = numbers.scores![r * width + c]!, power = open ? Math.exp(score - highest) : 0;
    powers.push(power);
    shares.push(weight);
    const hand = c === work.c;
    const share = cell(weight, hand ? "hand" : "");
    if (open) tint(share, weight, page.theme, 1);
    const line = h("tr", { class: hand ? "in-hand" : "" }, nameCell("key", page.keys(key), key, hand));
    if (open) line.append(cell(score), cell(score - highest), cell(power), share);
    else line.append(h("td", { class: "blocked", colspan: 2 }, say("numbers.blocked")), cell(0), share);
    for (const one of line.children) Object.assign((one as HTMLElement).dataset, { query: work.query, key });
    return line;
  });
  const more = row.weights.length - width;
  if (more > 0) {
    let power = 0; // over the keys that are not shown
    row.weights.forEach((weight, key) => {
      if (shown.has(key) || row.allowed[key] === 0) return;
      power += row.scores ? Math.exp(row.scores[key]! - highest) : weight * total;
    });
    powers.push(power);
    shares.push(numbers.rest[r]!);
    body.push(
      h(
        "tr", { class: "rest" }, pale(say("numbers.together", { count: more, value: fourDigits(numbers.rest[r]!) })),
        empty(), empty(), cell(power), cell(numbers.rest[r]!),
      )
    );
  }
  if (numbers.sink) {
    const sink = numbers.sink[r]!, power = Math.exp(sink - highest);
    powers.push(power);
    shares.push(power / total);
    body.push(
      h(
        "tr", { class: "rest" }, pale(say("numbers.sink")), cell(sink), cell(sink - highest), cell(power),
        cell(power / total),
      )
    );
  }
  body.push(
    h("tr", { class: "sum" }, pale(say("numbers.total")), empty(), empty(), cell(sum(powers)), cell(sum(shares)))
  );
  return inFigure(
    `${say("numbers.largest")} m = ${fourDigits(highest)}`,
    lines([say("key"), "s", "s − m", "exp(s − m)", `÷ ${fourDigits(total)} = w`], body),
  );
}

/** The keys of the row with their weights, and the others together: where nothing is known of how they came about. */
export function weightTable(work: Work, page: Page): HTMLElement {
  const { numbers, r } = work, width = numbers.columns.length, more = work.keys - width;
  const body = Array.from(numbers.columns, (key, c) => {
    const weight = numbers.weights[r * width + c]!, hand = c === work.c, share = cell(weight, hand ? "hand" : "");
    tint(share, weight, page.theme, 1);
    const line = h("tr", { class: hand ? "in-hand" : "" }, nameCell("key", page.keys(key), key, hand), share);
    for (const one of line.children) Object.assign((one as HTMLElement).dataset, { query: work.query, key });
    return line;
  });
  if (more > 0) {
    const rest = numbers.rest[r]!, words = page.say("numbers.together", { count: more, value: fourDigits(rest) });
    body.push(h("tr", { class: "rest" }, pale(words), cell(rest)));
  }
  return inFigure("w", lines([page.say("key"), "w"], body));
}

/** Channel by channel: v, and v times the weight in hand. */
export function valueTable(work: Work, page: Page): HTMLElement {
  const v = work.v!, weighted = work.weighted!;
  const count = shownCount(v.length, page.open);
  const body = Array.from(
    { length: count }, (_, c) => h("tr", {}, pale(String(c + 1)), cell(v[c]!), cell(weighted[c]!, "hand")),
  );
  if (count < v.length) body.push(
    h("tr", { class: "rest" }, pale(page.say("numbers.more", { count: v.length - count })), empty(), empty())
  );
  return inFigure(
    `w = ${fourDigits(work.weight)}`, lines([page.say("numbers.channel"), "v", `${fourDigits(work.weight)} × v`], body),
  );
}

/** Key by key: weight times v in each channel; then the other keys, the sum, and what the model's kernel gave. */
export function mixTable(work: Work, page: Page): HTMLElement {
  const { say } = page;
  const { numbers, r } = work;
  const { e, columns } = numbers, width = columns.length, mix = work.mix!, others = work.others!;
  const channels = Array.from({ length: shownCount(e, page.open) }, (_, c) => c);
  const left = e - channels.length;
  const end = (): HTMLElement[] => (left > 0 ? [h("td", { class: "pale" }, "…")] : []);
  const body = Array.from(columns, (key, j) => {
    const weight = numbers.weights[r * width + j]!, hand = j === work.c;
    const share = cell(weight);
    tint(share, weight, page.theme, 1);
    const line = h(
      "tr", { class: hand ? "in-hand" : "" }, nameCell("key", page.keys(key), key, hand), share,
      ...channels.map((c) => cell(weight * numbers.v![j * e + c]!, hand ? "hand" : "")), ...end(),
    );
    for (const one of line.children) Object.assign((one as HTMLElement).dataset, { query: work.query, key });
    return line;
  });
  const more = work.keys - width;
  if (more > 0)
    body.push(
      h(
        "tr", { class: "rest" }, pale(say("numbers.others", { count: more })), cell(numbers.rest[r]!),
        ...channels.map((c) => cell(others[c]!)), ...end()
      )
    );
  body.push(h("tr", { class: "sum" }, pale("mix"), empty(), ...channels.map((c) => cell(mix[c]!)), ...end()));
  if (numbers.kernel) {
    const kernel = numbers.kernel;
    body.push(
      h(
        "tr", { class: "rest" }, pale(say("numbers.kernel")), empty(), ...channels.map((c) => cell(kernel[c]!)),
        ...end()
      )
    );
    body.push(
      h(
        "tr", { class: "rest" }, pale(say("numbers.difference")), empty(),
        ...channels.map((c) => cell(mix[c]! - kernel[c]!)), ...end()
      )
    );
  }
  const head = [
    say("key"), "w", ...channels.map((c) => `w v, ${c + 1}`),
    ...(left > 0 ? [say("numbers.more", { count: left })] : [])
  ];
  return inFigure("∑ w v", lines(head, body));
}
