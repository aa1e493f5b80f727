/** A window onto something larger: the browser scrolls, and one canvas of the window's size shows what is there. */
import { type Surface, surface } from "../../paint/canvas";
import { styled } from "./element";

export interface Scroller {
  readonly box: HTMLElement; // takes the focus and the scrolling
  readonly surface: Surface;
  readonly left: () => number;
  readonly top: () => number;
  /** How large the whole is, in CSS pixels. The page holds one element of that size and nothing in it. */
  readonly extent: (width: number, height: number) => void;
  readonly to: (left: number, top: number) => void;
  readonly onScroll: (heard: () => void) => void;
}

/** Fills `stage` with such a window. */
export function scroller(stage: HTMLElement, signal: AbortSignal): Scroller {
  const box = styled("div", { position: "absolute", inset: "0", overflow: "auto", outline: "none" });
  const pane = styled("div", { position: "sticky", left: "0", top: "0", overflow: "hidden", touchAction: "pan-x pan-y" });
  const whole = styled("div", { position: "relative", minWidth: "100%", minHeight: "100%" }, pane);
  box.tabIndex = 0;
  box.append(whole);
  const ring = styled("div", {
    position: "absolute", inset: "0", pointerEvents: "none", border: "2px solid var(--view-focus)", zIndex: "1",
  });
  ring.hidden = true;
  stage.prepend(box, ring);
  const focused = (): void => { // the canvas lies over the box's own outline
    ring.hidden = !box.matches(":focus-visible");
  };
  for (const name of ["focus", "blur", "keydown"]) box.addEventListener(name, focused, { signal });
  const fit = (): void => {
    pane.style.width = `${box.clientWidth}px`;
    pane.style.height = `${box.clientHeight}px`;
  };
  fit();
  const painted = surface(pane, signal);
  const observer = new ResizeObserver(fit);
  observer.observe(box);
  signal.addEventListener("abort", () => observer.disconnect(), { once: true });
  return {
    box, surface: painted, left: () => box.scrollLeft, top: () => box.scrollTop,
    extent: (width, height) => {
      const next = { width: `${Math.ceil(width)}px`, height: `${Math.ceil(height)}px` };
      if (whole.style.width === next.width && whole.style.height === next.height) return;
      Object.assign(whole.style, next);
      fit(); // a scrollbar may have come or gone
    },
    to: (left, top) => {
      box.scrollLeft = left;
      box.scrollTop = top;
    },
    onScroll: (heard) => box.addEventListener("scroll", heard, { signal, passive: true }),
  };
}
