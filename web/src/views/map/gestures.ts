/** Fingers, wheels and keys, told as moves of a map. */
import { type Place, hasModifier, pointerPlace, takeKey } from "../parts/dom";

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
  const pointers = new Pointers(canvas, moves);
  canvas.style.touchAction = "none";
  canvas.addEventListener("pointerdown", (event) => pointers.press(event), { signal });
  canvas.addEventListener("pointermove", (event) => pointers.move(event), { signal });
  canvas.addEventListener("pointerup", (event) => pointers.release(event), { signal });
  canvas.addEventListener("pointercancel", (event) => pointers.release(event), { signal });
  canvas.addEventListener("pointerleave", () => pointers.leave(), { signal });
  canvas.addEventListener("wheel", (event) => turnWheel(event, canvas, moves), { signal, passive: false });
  canvas.addEventListener("dblclick", (event) => {
    const { x, y } = pointerPlace(event, canvas);
    event.preventDefault();
    moves.zoom(event.shiftKey ? 0.5 : 2, x, y);
  }, { signal });
  canvas.addEventListener("keydown", (event) => {
    if (!hasModifier(event) && moves.key(event)) takeKey(event);
  }, { signal });
}

const distance = (a: Place, b: Place): number => Math.hypot(a.x - b.x, a.y - b.y);

/** The pointers that are down: one drags or clicks, two pinch. */
class Pointers {
  private readonly down = new Map<number, Place>();
  private start: Place = { x: 0, y: 0 };
  private isDragging = false;
  private lastClick = { x: 0, y: 0, time: -Infinity };

  constructor(private readonly canvas: HTMLCanvasElement, private readonly moves: Moves) {}

  press(event: PointerEvent): void {
    if (event.pointerType === "mouse" && event.button !== 0) return;
    const place = pointerPlace(event, this.canvas);
    if (this.down.size === 0) this.start = place;
    this.isDragging = this.down.size > 0; // two fingers are no click
    this.down.set(event.pointerId, place);
    this.canvas.setPointerCapture?.(event.pointerId);
  }

  move(event: PointerEvent): void {
    const place = pointerPlace(event, this.canvas), before = this.down.get(event.pointerId);
    if (before === undefined) {
      if (event.pointerType !== "touch") this.moves.hover(place.x, place.y);
    } else if (this.down.size === 1) this.drag(event.pointerId, before, place);
    else if (this.down.size === 2) this.pinch(event.pointerId, place);
  }

  private drag(pointer: number, before: Place, place: Place): void {
    if (!this.isDragging && distance(place, this.start) < STILL) return;
    const from = this.isDragging ? before : this.start;
    this.isDragging = true;
    this.canvas.style.cursor = "grabbing";
    this.down.set(pointer, place);
    this.moves.pan(place.x - from.x, place.y - from.y);
  }

  private pinch(pointer: number, place: Place): void {
    const before = this.spread();
    this.down.set(pointer, place);
    const next = this.spread();
    this.moves.pan(next.x - before.x, next.y - before.y);
    this.moves.zoom(next.apart / before.apart, next.x, next.y);
  }

  /** The middle between two pointers, and how far apart they are. */
  private spread(): Place & { readonly apart: number } {
    const [a, b] = [...this.down.values()] as [Place, Place];
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, apart: Math.max(1, distance(a, b)) };
  }

  release(event: PointerEvent): void {
    if (!this.down.delete(event.pointerId)) return;
    this.canvas.style.cursor = "";
    const place = pointerPlace(event, this.canvas);
    if (this.down.size > 0 || this.isDragging || event.type !== "pointerup") return;
    const isSecond = distance(place, this.lastClick) < 2 * STILL && event.timeStamp - this.lastClick.time < TWICE;
    this.lastClick = { ...place, time: event.timeStamp };
    if (!isSecond) this.moves.click(place.x, place.y, event.shiftKey); // the second of a double click only zooms
  }

  leave(): void {
    if (this.down.size === 0) this.moves.leave();
  }
}

/** Zooms, or pans sideways. */
function turnWheel(event: WheelEvent, canvas: HTMLCanvasElement, moves: Moves): void {
  const unit = event.deltaMode === 1 ? LINE : event.deltaMode === 2 ? canvas.clientHeight : 1;
  const across = event.deltaX * unit, along = event.deltaY * unit, { x, y } = pointerPlace(event, canvas);
  if (!event.ctrlKey && (event.shiftKey || Math.abs(across) > Math.abs(along))) {
    event.preventDefault();
    moves.pan(-(across || along), 0);
    return;
  }
  // A pinch on a touchpad is a wheel with ctrl, in small steps. Where a wheel changes nothing, the page scrolls.
  const speed = event.ctrlKey ? 0.01 : 0.0022;
  const changed = moves.zoom(Math.exp(-Math.max(-120, Math.min(120, along)) * speed), x, y);
  if (changed || event.ctrlKey) event.preventDefault();
}
