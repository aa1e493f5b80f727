/** How far two maps are apart, in words above them. */
import { fourDigits } from "../../paint/digits";
import { tokenName } from "../parts/names";
import { type Child, h } from "../parts/element";
import type { Scene } from "../parts/view";
import { tokensOf } from "../../trace/source";
import type { Difference, DifferenceFacts } from "./difference";
import type { Pair } from "./pair";

/** What can be said so far; `facts` is null while they are on their way. */
export function factLines(
  scene: Scene, pair: Pair, difference: Difference | null, facts: DifferenceFacts | null,
): Node[] {
  const { say } = scene;
  const note = (words: string): Child => words !== "" && h("p", { class: "note" }, words);
  const lines: Child[] = [h("p", { class: "read" }, say("compare.read"))];
  if (facts && facts.largest === 0) lines.push(h("p", {}, say("compare.equal")));
  else if (facts) lines.push(...numbersOf(scene, facts));
  else if (difference) lines.push(h("p", { class: "pale" }, say("compare.loading")));
  const names = pair.names ? say("compare.names", pair.names) : "";
  const tokens = pair.tokens ? say("compare.tokens") : "", why = pair.exists && !pair.shape ? pair.why(say) : "";
  lines.push(note([names, tokens, why].filter(Boolean).join(" ")));
  if (difference && !difference.exact && facts) lines.push(note(say("compare.means", { size: facts.size })));
  return lines.filter((one): one is Node => one instanceof Node);
}

/** The largest difference, with a button that goes there, and the mean. */
function numbersOf({ source, choice, say }: Scene, { largest, query, key, mean, size }: DifferenceFacts): Node[] {
  const { layer, batch } = choice.picked.peek();
  const name = (which: "queries" | "keys", at: number): HTMLElement => {
    const tokens = tokensOf(source.info, layer, batch, which);
    return h("bdi", { class: which === "queries" ? "query" : "key" }, `${tokens ? tokenName(tokens, at, 20) : ""} #${at}`);
  };
  const jump = { type: "button", "data-do": "jump", onclick: () => choice.pick({ query, key }) };
  const over = size === 1 ? say("compare.seen") : say("compare.part", { size });
  return [
    h(
      "span", {}, `${say("compare.largest")} `,
      h("strong", { title: String(largest) }, `${largest > 0 ? "+" : ""}${fourDigits(largest)}`), " ",
      h("button", jump, name("queries", query), " → ", name("keys", key)),
    ),
    h(
      "span", {}, `${say("compare.mean")} `, h("strong", { title: String(mean) }, fourDigits(mean)),
      h("span", { class: "pale" }, ` ${over}`),
    ),
  ];
}
