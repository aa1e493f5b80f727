/** A small card beside the pointer, kept inside its stage. */
import { made } from "./dom";

export interface Tip {
  /** The first line is the title. Places are those of the stage. */
  readonly show: (x: number, y: number, lines: readonly string[]) => void;
  readonly hide: () => void;
}

export function tip(stage: HTMLElement): Tip {
  const card = made("div", {
    position: "absolute", left: "0", top: "0", zIndex: "3", pointerEvents: "none", padding: "6px 10px",
    background: "var(--view-raised)", color: "var(--view-ink)", border: "1px solid var(--view-line)",
    borderRadius: "6px", boxShadow: "0 2px 8px rgb(0 0 0 / 0.18)", fontSize: "12px", lineHeight: "1.45",
    fontVariantNumeric: "tabular-nums", maxWidth: "min(340px, 80%)", maxHeight: "90%", overflow: "hidden",
    whiteSpace: "pre-wrap", overflowWrap: "anywhere",
  });
  card.setAttribute("role", "tooltip");
  card.hidden = true;
  stage.append(card);
  return {
    show: (x, y, lines) => {
      card.replaceChildren(...lines.map((words, i) => made("div", i === 0 ? { fontWeight: "600" } : {}, words)));
      card.hidden = false;
      const { clientWidth: width, clientHeight: height } = stage;
      const left = x + 16 + card.offsetWidth <= width ? x + 16 : Math.max(4, x - 16 - card.offsetWidth);
      const top = Math.max(4, Math.min(y + 16, height - card.offsetHeight - 4));
      card.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
    },
    hide: () => {
      card.hidden = true;
    },
  };
}
