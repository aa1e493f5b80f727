/** The picture, its patches and their weights, on a canvas and as a file. */
import { type Scale, inkOn, ramp, scaleWeight, viridis, weightColor } from "../../paint/color";
import { hatch, hatchFill, hatchSvg } from "../../paint/hatch";
import { type Markup, label, node, svgDocument } from "../../paint/svg";
import type { Theme } from "../../paint/theme";
import type { ShownGlimpses } from "../../trace/messages";
import { paintWay, wayMarkup } from "./glimpses";
import { type PictureFrame, type PatchGrid, patchFrame } from "./patches";

export interface PatchWeights {
  readonly weights: Float32Array; // one per patch
  readonly allowed: Uint8Array;
  readonly top: number; // the largest of them
  readonly sorted: Float32Array;
}

export interface PictureLook {
  readonly theme: Theme;
  readonly grid: PatchGrid;
  readonly image: HTMLImageElement | null;
  readonly weighed: PatchWeights | null;
  readonly scale: Scale;
  readonly strength: number;
  readonly asked: number; // the patch that is the query; −1: none
  readonly pinned: number; // the patch that is the key in hand
  readonly over: number; // under the pointer
  readonly glimpses: ShownGlimpses | null; // where it looked, of a model that sees a few squares only
  readonly glimpse: number; // the chosen one
}

/** The weights of the patches, with what colours need to know. */
export function weigh(grid: PatchGrid, weights: Float32Array, allowed: Uint8Array): PatchWeights {
  const mine = Float32Array.from(grid.places, (place) => weights[place] ?? NaN);
  return {
    weights: mine, allowed: Uint8Array.from(grid.places, (place) => allowed[place] ?? 0),
    top: mine.reduce((most, weight) => Math.max(most, weight || 0), 0), sorted: mine.slice().sort(),
  };
}

/** The colour of a patch: viridis, laid thinly over a picture; without one, the map's own scale. */
const colourOf = (look: PictureLook, patch: number): string => {
  const { weights, top, sorted } = look.weighed!;
  const t = scaleWeight(weights[patch]!, look.scale, top, sorted);
  return look.image ? viridis(t) : weightColor(t, look.theme.dark);
};

const inkFor = (look: PictureLook, patch: number): string => {
  const { weights, top, sorted } = look.weighed!;
  const at = 4 * Math.round(255 * scaleWeight(weights[patch]!, look.scale, top, sorted)), colours = ramp(look.theme.dark);
  return inkOn(colours[at]!, colours[at + 1]!, colours[at + 2]!);
};

/** Draws one frame; `bare` is the picture without weights. */
export function paintFrame(
  context: CanvasRenderingContext2D, frame: PictureFrame, look: PictureLook, bare: boolean,
): void {
  const { theme, grid, weighed } = look;
  const patches = grid.rows * grid.columns;
  if (look.image) context.imageSmoothingEnabled = frame.width < 6 * look.image.naturalWidth; // few pixels stay squares
  if (look.image) context.drawImage(look.image, frame.x, frame.y, frame.width, frame.height);
  else {
    context.fillStyle = theme.raised;
    context.fillRect(frame.x, frame.y, frame.width, frame.height);
  }
  if (!bare && weighed) {
    context.globalAlpha = look.image ? look.strength : 1;
    const blocked = hatch(context, theme, "blocked");
    for (let patch = 0; patch < patches; patch++) {
      const at = patchFrame(frame, grid, patch);
      context.fillStyle = weighed.allowed[patch] ? colourOf(look, patch) : blocked;
      const left = Math.round(at.x), top = Math.round(at.y); // whole pixels leave no seams
      context.fillRect(left, top, Math.round(at.x + at.width) - left, Math.round(at.y + at.height) - top);
    }
    context.globalAlpha = 1;
  }
  const one = patchFrame(frame, grid, 0);
  if (!look.image) {
    context.strokeStyle = theme.line;
    context.lineWidth = 1;
    for (let c = 0; c <= grid.columns; c++) stroke(context, frame.x + c * one.width, frame.y, 0, frame.height);
    for (let r = 0; r <= grid.rows; r++) stroke(context, frame.x, frame.y + r * one.height, frame.width, 0);
    if (one.width >= 30 && one.height >= 20) {
      context.font = "12px system-ui, sans-serif";
      context.textAlign = "center";
      context.textBaseline = "middle";
      for (let patch = 0; patch < patches; patch++) {
        const at = patchFrame(frame, grid, patch);
        context.fillStyle = !bare && weighed?.allowed[patch] ? inkFor(look, patch) : theme.pale;
        context.fillText(String(patch), at.x + at.width / 2, at.y + at.height / 2);
      }
    }
  }
  if (!bare && look.glimpses)
    paintWay(context, frame, { width: grid.columns, height: grid.rows }, look.glimpses, look.glimpse);
  const outline = (patch: number, colour: string, width: number): void => {
    if (patch < 0 || patch >= patches) return;
    const at = patchFrame(frame, grid, patch);
    context.lineWidth = width + 2; // a dark edge, so that the frame is seen on any picture
    context.strokeStyle = "#000000";
    context.strokeRect(at.x, at.y, at.width, at.height);
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.strokeRect(at.x, at.y, at.width, at.height);
  };
  outline(look.over, "#ffffff", 2);
  outline(look.pinned, "#6db3f8", 2);
  outline(look.asked, "#f2a65a", 3);
}

function stroke(context: CanvasRenderingContext2D, x: number, y: number, dx: number, dy: number): void {
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x + dx, y + dy);
  context.stroke();
}

/** The picture with its weights as a file; the picture itself is held inside. */
export function pictureFile(
  look: PictureLook, form: { width: number; height: number }, title: string, legend: readonly [string, string],
): string {
  const wide = 480, frame: PictureFrame = { x: 20, y: 40, width: wide, height: (wide * form.height) / form.width };
  const parts: Markup[] = [
    node("rect", { width: wide + 40, height: frame.height + 100, fill: look.theme.ground }),
    hatchSvg("blocked", look.theme),
  ];
  parts.push(label(20, 24, title, { fill: look.theme.ink, "font-size": 14 }));
  const address = look.image && bytesOf(look.image);
  if (address) parts.push(
    node(
      "image",
      { href: address, x: frame.x, y: frame.y, width: frame.width, height: frame.height, preserveAspectRatio: "none" },
    )
  );
  const { weighed } = look;
  if (weighed) {
    const cells = Array.from(weighed.weights, (weight, patch) => {
      const at = patchFrame(frame, look.grid, patch);
      const fill = weighed.allowed[patch] ? colourOf(look, patch) : hatchFill("blocked");
      return node(
        "rect", { x: at.x, y: at.y, width: at.width, height: at.height, fill },
        node("title", {}, `${patch}: ${weight}`),
      );
    });
    parts.push(node("g", { opacity: address ? look.strength : 1 }, ...cells));
  }
  if (look.asked >= 0) {
    const at = patchFrame(frame, look.grid, look.asked);
    parts.push(
      node(
        "rect",
        { x: at.x, y: at.y, width: at.width, height: at.height, fill: "none", stroke: "#f2a65a", "stroke-width": 3 },
      )
    );
  }
  const pixels = { width: look.grid.columns, height: look.grid.rows };
  if (look.glimpses) parts.push(...wayMarkup(frame, pixels, look.glimpses, look.glimpse));
  const y = frame.y + frame.height + 14;
  for (let i = 0; i < 40; i++)
    parts.push(
      node(
        "rect",
        {
          x: 20 + i * 5, y, width: 5.3, height: 12,
          fill: look.image ? viridis(i / 39) : weightColor(i / 39, look.theme.dark),
        },
      )
    );
  parts.push(
    label(20, y + 28, legend[0], { fill: look.theme.ink }),
    label(220, y + 28, legend[1], { fill: look.theme.ink, "text-anchor": "end" }),
  );
  return svgDocument(wide + 40, frame.height + 100, parts);
}

/** The picture as a data: address; null where the browser gives none. */
function bytesOf(image: HTMLImageElement): string | null {
  const canvas = document.createElement("canvas");
  canvas.width = image.naturalWidth;
  canvas.height = image.naturalHeight;
  const context = canvas.getContext("2d");
  if (!context) return null;
  context.drawImage(image, 0, 0);
  try {
    return canvas.toDataURL("image/png");
  } catch {
    return null; // a browser that forbids reading pictures back
  }
}
