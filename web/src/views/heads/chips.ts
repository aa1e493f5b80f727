/** The heads of a layer as chips: each shows or hides its lines. */
import type { Choice, Selection } from "../../choose/choice";
import { headColor, inkOn } from "../../paint/color";
import type { Theme } from "../../paint/theme";
import type { Say } from "../../language/language";
import { button } from "../parts/dom";
import { styled } from "../parts/element";

/** The heads that are shown: those chosen that the layer has, or the one in hand. */
export function shownHeads(picked: Pick<Selection, "head" | "heads">, heads: number): readonly number[] {
  const shown = [...new Set(picked.heads)].filter((head) => head >= 0 && head < heads).sort((a, b) => a - b);
  return shown.length > 0 ? shown : heads === 0 ? [] : [Math.max(0, Math.min(picked.head, heads - 1))];
}

type Heads = Pick<Selection, "head" | "heads">;

/** What is picked after a chip was pressed: shown ones go, others come; the last one stays. */
export function toggleHead(picked: Heads, heads: number, head: number): Heads {
  const shown = shownHeads(picked, heads);
  if (!shown.includes(head)) return { head, heads: [...shown, head].sort((a, b) => a - b) };
  const left = shown.filter((other) => other !== head);
  if (left.length < 2) return { head: left[0] ?? head, heads: [] };
  return { head: picked.head === head ? left[0]! : picked.head, heads: left };
}

const inkOf = (color: string): string => {
  const part = (i: number): number => Number.parseInt(color.slice(i, i + 2), 16);
  return inkOn(part(1), part(3), part(5));
};

export interface Chips {
  readonly el: HTMLElement;
  readonly show: (heads: number, picked: Selection, theme: Theme, say: Say) => void;
}

/** Chips that toggle, a button for all and one for the head in hand alone. */
export function chips(choice: Choice, signal: AbortSignal): Chips {
  let count = 0;
  const all = button(() => choice.pick({ heads: Array.from({ length: count }, (_, i) => i) }), signal);
  const one = button(() => choice.pick({ heads: [] }), signal);
  const list = styled("div", { display: "flex", flexWrap: "wrap", gap: "3px" });
  const el = styled("div", { display: "flex", flexWrap: "wrap", alignItems: "center", gap: "6px" }, list, all, one);
  el.setAttribute("role", "group");
  const chip = (head: number): HTMLButtonElement => {
    const chip = button(() => choice.pick(toggleHead(choice.picked.value, count, head)), signal);
    Object.assign(chip.style, { minWidth: "30px", padding: "2px 5px", borderWidth: "2px",
      borderStyle: ["solid", "dashed", "dotted"][Math.floor(head / 12) % 3]!, fontVariantNumeric: "tabular-nums" });
    chip.addEventListener("dblclick", () => choice.pick({ head, heads: [] }), { signal });
    chip.addEventListener("pointerenter", () => choice.point({ head }), { signal });
    chip.addEventListener("pointerleave", () => choice.point(null), { signal });
    chip.textContent = String(head);
    return chip;
  };
  return {
    el,
    show: (heads, picked, theme, say) => {
      if (heads !== count) {
        count = heads;
        list.replaceChildren(...Array.from({ length: heads }, (_, head) => chip(head)));
      }
      const shown = new Set(shownHeads(picked, heads));
      Array.from(list.children as HTMLCollectionOf<HTMLButtonElement>).forEach((found, head) => {
        const color = headColor(head, theme.dark), on = shown.has(head);
        found.setAttribute("aria-pressed", String(on));
        found.setAttribute("aria-label", `${say("head")} ${head}`);
        found.title = say("heads.chip", { head });
        const ink = on ? inkOf(color) : theme.ink;
        Object.assign(found.style, { background: on ? color : theme.ground, borderColor: color, color: ink });
      });
      el.setAttribute("aria-label", say("heads.which"));
      all.textContent = say("heads.all");
      one.textContent = say("heads.one", { head: Math.min(picked.head, Math.max(0, heads - 1)) });
      all.hidden = one.hidden = heads < 2;
    },
  };
}
