/** Where a model looked that sees a few squares of a picture: the way over the picture, and what each square held. */
import type { ShownGlimpses } from "../../trace/messages";
import { type Markup, label, node } from "../../paint/svg";
import type { PictureFrame } from "./patches";

export interface Square {
  readonly left: number; // in pixels of the picture; it may begin outside of it
  readonly top: number;
  readonly side: number;
}

const LINE = "#ffffff", EDGE = "#000000", CHOSEN = "#f2a65a", DOT = 9;

/** The squares of one glimpse, the smallest first, as the model cuts them out. */
export function squaresOf({ size, scales, places }: ShownGlimpses, at: number): Square[] {
  const [row, column] = places[at]!, far = size * 2 ** (scales - 1);
  return Array.from({ length: scales }, (_, scale) => {
    const side = size * 2 ** scale, inset = Math.floor((far - side) / 2) - Math.floor(far / 2);
    return { top: row + inset, left: column + inset, side };
  });
}

export interface Pixels {
  readonly width: number;
  readonly height: number;
  readonly data: ArrayLike<number>; // red, green, blue and opacity of each pixel, row by row
}

/** What a square gives: `size` × `size` means of its pixels; what lies outside of the picture is transparent. */
export function seenIn(pixels: Pixels, { top, left, side }: Square, size: number): Uint8ClampedArray<ArrayBuffer> {
  const seen = new Uint8ClampedArray(4 * size * size), step = side / size;
  for (let cell = 0; cell < size * size; cell++) {
    const sums = [0, 0, 0, 0];
    for (let i = 0; i < step * step; i++) {
      const y = top + Math.floor(cell / size) * step + Math.floor(i / step), x = left + (cell % size) * step + (i % step);
      if (y < 0 || x < 0 || y >= pixels.height || x >= pixels.width) continue;
      for (let c = 0; c < 3; c++) sums[c]! += pixels.data[4 * (y * pixels.width + x) + c]!;
      sums[3]! += 1;
    }
    const inside = Math.max(1, sums[3]!);
    for (let c = 0; c < 3; c++) seen[4 * cell + c] = sums[c]! / inside;
    seen[4 * cell + 3] = (255 * sums[3]!) / (step * step);
  }
  return seen;
}

/** A small picture of what each scale of a glimpse held; null where the browser reads no pixels back. */
export function glimpsePicture(image: HTMLImageElement, glimpses: ShownGlimpses, at: number): HTMLElement | null {
  const { naturalWidth: width, naturalHeight: height } = image, whole = document.createElement("canvas");
  Object.assign(whole, { width, height });
  const reader = whole.getContext("2d", { willReadFrequently: true }), shown = document.createElement("canvas");
  const { size, scales } = glimpses;
  Object.assign(shown, { width: size * scales, height: size, className: "glimpse" });
  const pen = shown.getContext("2d");
  if (!reader || !pen || width === 0) return null;
  reader.drawImage(image, 0, 0);
  try {
    const pixels = reader.getImageData(0, 0, width, height);
    squaresOf(glimpses, at).forEach((square, scale) =>
      pen.putImageData(new ImageData(seenIn(pixels, square, size), size, size), scale * size, 0));
  } catch {
    return null; // a browser that forbids reading pictures back
  }
  return shown;
}

interface Form { readonly width: number; readonly height: number }

const placed = ({ places }: ShownGlimpses, frame: PictureFrame, form: Form): (readonly [number, number])[] =>
  places.map(([row, column]) =>
    [frame.x + (column / form.width) * frame.width, frame.y + (row / form.height) * frame.height] as const);

/** Where a number can be read: a glimpse at the rim of the picture has its own within. */
const inside = ([x, y]: readonly [number, number], { x: left, y: top, width, height }: PictureFrame) => [
  Math.max(left + DOT, Math.min(left + width - DOT, x)), Math.max(top + DOT, Math.min(top + height - DOT, y)),
] as const;

/** The way from glimpse to glimpse, each with its number, and the squares of the chosen one. */
export function paintWay(
  pen: CanvasRenderingContext2D, frame: PictureFrame, form: Form, glimpses: ShownGlimpses, chosen: number,
): void {
  const middles = placed(glimpses, frame, form), zoom = frame.width / form.width;
  const stroke = (colour: string, width: number, draw: () => void): void => {
    Object.assign(pen, { strokeStyle: colour, lineWidth: width });
    draw();
  };
  pen.save();
  pen.beginPath();
  pen.rect(frame.x - 4, frame.y - 4, frame.width + 8, frame.height + 8);
  pen.clip();
  for (const { left, top, side } of glimpses.places[chosen] ? squaresOf(glimpses, chosen) : []) {
    const draw = (): void => pen.strokeRect(frame.x + left * zoom, frame.y + top * zoom, side * zoom, side * zoom);
    stroke(EDGE, 5, draw);
    stroke(CHOSEN, 3, draw);
  }
  pen.beginPath();
  middles.forEach(([x, y]) => pen.lineTo(x, y));
  stroke(EDGE, 4, () => pen.stroke());
  stroke(LINE, 2, () => pen.stroke());
  Object.assign(pen, { font: "bold 12px system-ui, sans-serif", textAlign: "center", textBaseline: "middle" });
  middles.map((one) => inside(one, frame)).forEach(([x, y], at) => {
    pen.beginPath();
    pen.arc(x, y, DOT, 0, 2 * Math.PI);
    pen.fillStyle = at === chosen ? CHOSEN : LINE;
    pen.fill();
    stroke(EDGE, 1.5, () => pen.stroke());
    pen.fillStyle = EDGE;
    pen.fillText(String(at + 1), x, y);
  });
  pen.restore();
}

/** The same as a file. */
export function wayMarkup(frame: PictureFrame, form: Form, glimpses: ShownGlimpses, chosen: number): Markup[] {
  const middles = placed(glimpses, frame, form), zoom = frame.width / form.width;
  const squares = glimpses.places[chosen] ? squaresOf(glimpses, chosen) : [];
  return [
    ...squares.map(({ left, top, side }) => node("rect", {
      x: frame.x + left * zoom, y: frame.y + top * zoom, width: side * zoom, height: side * zoom, fill: "none",
      stroke: CHOSEN, "stroke-width": 3,
    })),
    ...[[EDGE, 4] as const, [LINE, 2] as const].map(([stroke, width]) => node("polyline", {
      points: middles.map((one) => one.join(",")).join(" "), fill: "none", stroke, "stroke-width": width,
    })),
    ...middles.map((one) => inside(one, frame)).flatMap(([x, y], at) => [
      node("circle", { cx: x, cy: y, r: DOT, fill: at === chosen ? CHOSEN : LINE, stroke: EDGE }),
      label(x, y + 4, String(at + 1), { fill: EDGE, "text-anchor": "middle", "font-weight": "bold" }),
    ]),
  ];
}
