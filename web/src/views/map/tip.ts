/** A small panel by the pointer: what is looked at, and its numbers. Text only. */
import type { Theme } from "../../paint/theme";

export interface TipLine {
  readonly name: string;
  readonly value: string;
}
export interface TipText {
  readonly query: string | null;
  readonly key: string | null;
  readonly lines: readonly TipLine[];
}

export interface Tip {
  readonly show: (text: TipText, x: number, y: number, theme: Theme) => void;
  readonly hide: () => void;
}

const AWAY = 14; // pixels from the pointer

/** A tooltip inside `el`, which it never leaves. */
export function tip(el: HTMLElement): Tip {
  const box = document.createElement("div");
  box.setAttribute("role", "tooltip");
  box.hidden = true;
  Object.assign(box.style, {
    position: "absolute", left: "0", top: "0", zIndex: "3", pointerEvents: "none", padding: "6px 9px",
    borderRadius: "6px",
    fontSize: "13px", lineHeight: "18px", maxWidth: "min(340px, 70%)", overflowWrap: "anywhere",
    boxShadow: "0 2px 10px rgb(0 0 0 / 0.22)",
  });
  el.append(box);
  const span = (text: string, color: string): HTMLElement => {
    const one = document.createElement("bdi");
    one.textContent = text;
    one.style.color = color;
    return one;
  };
  return {
    show: (text, x, y, theme) => {
      Object.assign(box.style, { background: theme.raised, color: theme.ink, border: `1px solid ${theme.line}` });
      const head = document.createElement("div");
      head.style.fontWeight = "600";
      if (text.query !== null) head.append(span(text.query, theme.query));
      if (text.query !== null && text.key !== null) head.append(" → ");
      if (text.key !== null) head.append(span(text.key, theme.key));
      const table = document.createElement("div");
      Object.assign(table.style, {
        display: "grid", gridTemplateColumns: "auto 1fr", columnGap: "12px", fontVariantNumeric: "tabular-nums",
      });
      for (const { name, value } of text.lines) table.append(span(name, theme.pale), span(value, theme.ink));
      box.replaceChildren(head, table);
      box.hidden = false;
      const { offsetWidth: width, offsetHeight: height } = box;
      const left = x + AWAY + width <= el.clientWidth ? x + AWAY : x - AWAY - width;
      const top = y + AWAY + height <= el.clientHeight ? y + AWAY : y - AWAY - height;
      box.style.transform = `translate(${Math.max(2, Math.round(left))}px, ${Math.max(2, Math.round(top))}px)`;
    },
    hide: () => {
      box.hidden = true;
    },
  };
}
