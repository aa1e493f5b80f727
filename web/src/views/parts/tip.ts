/** A small card beside the pointer, kept inside its stage. */
import { type Child, styled } from "./element";

export interface Card {
  /** Places are those of the stage. */
  readonly show: (x: number, y: number, ...children: readonly Child[]) => void;
  readonly hide: () => void;
}

const AWAY = 16, EDGE = 4; // pixels from the pointer, and from the edges

/** A card on a stage that is dressed; it stands below right of the pointer, or wherever there is room. */
export function card(stage: HTMLElement): Card {
  const box = styled("div", {
    position: "absolute", left: "0", top: "0", zIndex: "3", pointerEvents: "none", padding: "6px 10px",
    background: "var(--view-raised)", color: "var(--view-ink)", border: "1px solid var(--view-line)",
    borderRadius: "6px", boxShadow: "0 2px 8px rgb(0 0 0 / 0.2)", fontSize: "13px", lineHeight: "18px",
    fontVariantNumeric: "tabular-nums", maxWidth: "min(340px, 80%)", maxHeight: "90%", overflow: "hidden",
    overflowWrap: "anywhere",
  });
  box.setAttribute("role", "tooltip");
  box.hidden = true;
  stage.append(box);
  const beside = (at: number, size: number, room: number): number => {
    const place = at + AWAY + size <= room ? at + AWAY : at - AWAY - size;
    return Math.round(Math.max(EDGE, Math.min(place, room - size - EDGE)));
  };
  return {
    show: (x, y, ...children) => {
      box.replaceChildren(styled("div", {}, ...children));
      box.hidden = false;
      const left = beside(x, box.offsetWidth, stage.clientWidth), top = beside(y, box.offsetHeight, stage.clientHeight);
      box.style.transform = `translate(${left}px, ${top}px)`;
    },
    hide: () => {
      box.hidden = true;
    },
  };
}

export interface Tip {
  /** The first line is the title. */
  readonly show: (x: number, y: number, lines: readonly string[]) => void;
  readonly hide: () => void;
}

/** A card of lines. */
export function tip(stage: HTMLElement): Tip {
  const { show, hide } = card(stage);
  const line = (words: string, i: number): HTMLElement =>
    styled("div", { whiteSpace: "pre-wrap", ...(i === 0 ? { fontWeight: "600" } : {}) }, words);
  return { show: (x, y, lines) => show(x, y, ...lines.map(line)), hide };
}
