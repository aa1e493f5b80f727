/** Fingers, wheels and keys, told as moves of a map. */

export interface Moves {
  readonly zoom: (factor: number, x: number, y: number) => boolean; // whether anything changed
  readonly pan: (dx: number, dy: number) => void;
  readonly hover: (x: number, y: number) => void;
  readonly leave: () => void;
  readonly click: (x: number, y: number, shift: boolean) => void;
  readonly key: (event: KeyboardEvent) => boolean; // whether it meant something
}

const STILL = 4; // pixels that a click may tremble
const TWICE = 300; // milliseconds between the clicks of a double click
const LINE = 18; // pixels of a wheel that counts in lines

/** Listens on `canvas` until `signal` fires. Coordinates are those of the canvas, in CSS pixels. */
export function gestures(canvas: HTMLCanvasElement, moves: Moves, signal: AbortSignal): void {
  const down = new Map<number, { x: number; y: number }>();
  let start = { x: 0, y: 0 }, dragged = false, clicked = { x: 0, y: 0, time: -Infinity };
  const at = (event: MouseEvent): { x: number; y: number } => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const spread = (): { x: number; y: number; apart: number } => {
    const [a, b] = [...down.values()] as [{ x: number; y: number }, { x: number; y: number }];
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, apart: Math.max(1, Math.hypot(a.x - b.x, a.y - b.y)) };
  };

  const pressed = (event: PointerEvent): void => {
    if (event.pointerType === "mouse" && event.button !== 0) return;
    const place = at(event);
    if (down.size === 0) {
      start = place;
      dragged = false;
    } else dragged = true; // two fingers are no click
    down.set(event.pointerId, place);
    canvas.setPointerCapture?.(event.pointerId);
  };
  const dragging = (event: PointerEvent): void => {
    const place = at(event), before = down.get(event.pointerId);
    if (before === undefined) {
      if (event.pointerType !== "touch") moves.hover(place.x, place.y);
      return;
    }
    if (down.size === 1) {
      if (!dragged && Math.hypot(place.x - start.x, place.y - start.y) < STILL) return;
      const from = dragged ? before : start;
      dragged = true;
      canvas.style.cursor = "grabbing";
      down.set(event.pointerId, place);
      moves.pan(place.x - from.x, place.y - from.y);
      return;
    }
    if (down.size > 2) return;
    const first = spread();
    down.set(event.pointerId, place);
    const next = spread();
    moves.pan(next.x - first.x, next.y - first.y);
    moves.zoom(next.apart / first.apart, next.x, next.y);
  };
  const released = (event: PointerEvent): void => {
    if (!down.delete(event.pointerId)) return;
    canvas.style.cursor = "";
    const place = at(event);
    if (down.size > 0 || dragged || event.type !== "pointerup") return;
    const near = Math.hypot(place.x - clicked.x, place.y - clicked.y) < 2 * STILL;
    const second = near && event.timeStamp - clicked.time < TWICE;
    clicked = { ...place, time: event.timeStamp };
    if (!second) moves.click(place.x, place.y, event.shiftKey); // the second of a double click only zooms
  };
  const wheeled = (event: WheelEvent): void => {
    const unit = event.deltaMode === 1 ? LINE : event.deltaMode === 2 ? canvas.clientHeight : 1;
    const across = event.deltaX * unit, along = event.deltaY * unit, { x, y } = at(event);
    if (!event.ctrlKey && (event.shiftKey || Math.abs(across) > Math.abs(along))) {
      event.preventDefault();
      moves.pan(-(across || along), 0);
      return;
    }
    // A pinch on a touchpad is a wheel with ctrl, in small steps. Where a wheel changes nothing, the page scrolls.
    const changed = moves.zoom(Math.exp(-Math.max(-120, Math.min(120, along)) * (event.ctrlKey ? 0.01 : 0.0022)), x, y);
    if (changed || event.ctrlKey) event.preventDefault();
  };
  const twice = (event: MouseEvent): void => {
    const { x, y } = at(event);
    event.preventDefault();
    moves.zoom(event.shiftKey ? 0.5 : 2, x, y);
  };
  const typed = (event: KeyboardEvent): void => {
    if (event.altKey || event.metaKey || event.ctrlKey || !moves.key(event)) return;
    event.preventDefault();
    event.stopPropagation();
  };
  const left = (): void => {
    if (down.size === 0) moves.leave();
  };

  canvas.style.touchAction = "none";
  canvas.addEventListener("pointerdown", pressed, { signal });
  canvas.addEventListener("pointermove", dragging, { signal });
  canvas.addEventListener("pointerup", released, { signal });
  canvas.addEventListener("pointercancel", released, { signal });
  canvas.addEventListener("pointerleave", left, { signal });
  canvas.addEventListener("wheel", wheeled, { signal, passive: false });
  canvas.addEventListener("dblclick", twice, { signal });
  canvas.addEventListener("keydown", typed, { signal });
}
