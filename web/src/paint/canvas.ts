/** A canvas as large as its element, sharp on every screen. */
import { nullContext } from "./nullContext";

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** Where a view paints. Sizes and coordinates are CSS pixels; the context is scaled to the screen's own. */
export interface Surface {
  readonly canvas: HTMLCanvasElement;
  readonly context: CanvasRenderingContext2D;
  readonly size: () => Size;
  readonly ratio: () => number; // screen pixels per CSS pixel
  readonly onResize: (heard: () => void) => void; // after each change of size; the canvas is empty then
}

/** A canvas that fills `el` and follows its size until `signal` fires. */
export function surface(el: HTMLElement, signal: AbortSignal): Surface {
  const canvas = document.createElement("canvas");
  Object.assign(canvas.style, {
    position: "absolute", left: "0", top: "0", width: "100%", height: "100%", display: "block",
  });
  if (getComputedStyle(el).position === "static" || el.style.position === "static") el.style.position = "relative";
  el.append(canvas);
  const context = canvas.getContext("2d") ?? nullContext(canvas);
  const heard: (() => void)[] = [];
  let size: Size = { width: 0, height: 0 };
  let ratio = 1;

  const fit = (): boolean => {
    const next = { width: el.clientWidth, height: el.clientHeight };
    const sharp = globalThis.devicePixelRatio || 1;
    if (next.width === size.width && next.height === size.height && sharp === ratio) return false;
    size = next;
    ratio = sharp;
    canvas.width = Math.max(1, Math.round(size.width * ratio));
    canvas.height = Math.max(1, Math.round(size.height * ratio));
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    return true;
  };
  const changed = (): void => {
    if (!signal.aborted && fit()) for (const hear of heard) hear();
  };
  fit();
  const observer = new ResizeObserver(changed);
  observer.observe(el);
  globalThis.addEventListener("resize", changed, { signal }); // a move to a sharper screen changes no size
  signal.addEventListener("abort", () => observer.disconnect(), { once: true });
  return { canvas, context, size: () => size, ratio: () => ratio, onResize: (hear) => heard.push(hear) };
}
