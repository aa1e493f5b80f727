/** What an edit did: the text and the chances before and after, with what differs marked. */
import type { EditEffect } from "../../trace/messages";
import { markInvisible } from "../../paint/text";
import { fewDigits } from "../../paint/digits";
import type { Say } from "../../language/language";
import { diffTexts, type TextPart, shifts } from "./diff";
import { h } from "../parts/element";

const LINES = 12;

const markChanges = (parts: readonly TextPart[]): HTMLElement =>
  h("bdi", { class: "said" }, ...parts.map((part) => (part.changed ? h("mark", {}, part.text) : part.text)));

function texts(effect: EditEffect, say: Say): HTMLElement | null {
  const { beforeText, afterText } = effect;
  if (beforeText === null && afterText === null) return null;
  const [before, after] = diffTexts(beforeText ?? "", afterText ?? "");
  const line = (name: string, parts: readonly TextPart[]): HTMLElement[] =>
    [h("dt", {}, name), h("dd", {}, markChanges(parts))];
  const lines = [...line(say("edit.before"), before), ...line(say("edit.after"), after)];
  const box = h("div", {}, h("h3", {}, say("edit.text")), h("dl", { class: "texts" }, ...lines));
  if (beforeText === afterText) box.append(h("p", { class: "pale" }, say("edit.text.same")));
  return box;
}

const share = (value: number | null, say: Say): HTMLElement => {
  const cell = h("td", { class: "number" }, value === null ? "–" : fewDigits(value));
  cell.title = value === null ? say("edit.gone") : String(value);
  return cell;
};

function table(effect: EditEffect, say: Say): HTMLElement | null {
  const all = shifts(effect.before, effect.after);
  if (all.length === 0) return null;
  const head = ["edit.token", "edit.before", "edit.after", "edit.change"] as const;
  const table = h("table", { class: "effect" }, h("thead", {}, h("tr", {}, ...head.map((key) => {
    const cell = h("th", {}, say(key));
    cell.scope = "col";
    return cell;
  }))));
  const first = (list: EditEffect["before"]): string | undefined => {
    const most = Math.max(...list.map((one) => one.share));
    return list.find((one) => one.share === most)?.name;
  };
  const winners = [first(effect.before), first(effect.after)];
  table.append(h("tbody", {}, ...all.slice(0, LINES).map(({ name, before, after }) => {
    const known = before !== null && after !== null;
    const change = known ? after - before : null;
    const sign = change === null ? "" : change > 0 ? "+" : change < 0 ? "−" : "±";
    const cell = h("td", { class: "number change" }, change === null ? "–" : `${sign}${fewDigits(Math.abs(change))}`);
    cell.dataset["way"] = change === null || Math.abs(change) < 5e-4 ? "" : change > 0 ? "up" : "down";
    const named = h("th", {}, h("bdi", {}, markInvisible(name.slice(0, 60))));
    const row = h("tr", {}, named, share(before, say), share(after, say), cell);
    if (winners[0] !== winners[1] && winners.includes(name)) row.className = "turned";
    return row;
  })));
  return table;
}

/** The whole effect as a section. */
export function effectSection(effect: EditEffect, stale: boolean, say: Say, compare: () => void): HTMLElement {
  const box = h("section", { class: "result" }, h("h2", {}, say("edit.result")));
  if (stale) box.append(h("p", { class: "pale" }, say("edit.stale")));
  for (const part of [texts(effect, say), table(effect, say)]) if (part !== null) box.append(part);
  if (effect.kl !== null) box.append(h("p", { class: "number kl" }, say("edit.kl", { kl: fewDigits(effect.kl) })));
  const open = h("button", {}, say("edit.compare"));
  open.type = "button";
  open.addEventListener("click", compare);
  box.append(open);
  return box;
}
