/** Where a weight stands on the screen. Pure: shapes and boxes in, numbers out. */
import { TILE } from "../../trace/source";
import type { Zoom } from "../../choose/choice";

export interface MapShape {
  readonly queries: number;
  readonly keys: number;
}
/** The part of the element that holds cells, in CSS pixels. */
export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}
/** The weight at the box's corner, the pixels of one key, and how much taller than wide a cell is. */
export interface Camera {
  readonly left: number;
  readonly top: number;
  readonly scale: number;
  readonly stretch: number;
}
export interface MapPlace {
  readonly query: number;
  readonly key: number;
}

const LARGEST_FIT = 64; // pixels: a map of six tokens does not fill a wall
const LARGEST = 112; // pixels: nearer there is nothing more to see
const SHORT_SIDE = 200; // pixels that a very flat or narrow map takes at least, where it has the cells for it
const SHORT_CELL = 24;

/** The camera that shows all of it: square cells, except where a map is so flat that they could not be seen. */
export function wholeCamera(shape: MapShape, box: Box): Camera {
  const across = Math.min(box.width / shape.keys, LARGEST_FIT);
  const down = Math.min(box.height / shape.queries, LARGEST_FIT);
  const square = Math.min(across, down);
  const wide = Math.max(square, Math.min(across, SHORT_CELL, SHORT_SIDE / shape.keys));
  const high = Math.max(square, Math.min(down, SHORT_CELL, SHORT_SIDE / shape.queries));
  return clampCamera({ left: 0, top: 0, scale: wide, stretch: high / wide }, shape, box);
}

/** A camera held within its limits: never smaller than the whole, which stands in the middle; never outside. */
export function clampCamera(camera: Camera, shape: MapShape, box: Box): Camera {
  const { stretch } = camera;
  const fit = Math.min(
    box.width / shape.keys, box.height / shape.queries / stretch, LARGEST_FIT / Math.min(1, stretch),
  );
  const scale = Math.min(Math.max(camera.scale, fit), Math.max(fit, LARGEST / Math.min(1, stretch)));
  const across = box.width / scale, down = box.height / (scale * stretch);
  const inside = (at: number, slack: number): number => Math.min(Math.max(at, Math.min(0, slack)), Math.max(0, slack));
  if (scale <= fit * 1.0001) return { left: Math.min(0, (shape.keys - across) / 2), top: 0, scale, stretch };
  return {
    left: inside(camera.left, shape.keys - across), top: inside(camera.top, shape.queries - down), scale, stretch,
  };
}

/** The camera that shows this part; null is all of it. A part that makes no sense shows all. */
export function cameraOf(zoom: Zoom | null, shape: MapShape, box: Box): Camera {
  const all = wholeCamera(shape, box);
  if (zoom === null || !(zoom.right > zoom.left) || !(zoom.bottom > zoom.top)) return all;
  const scale = Math.min(box.width / (zoom.right - zoom.left), box.height / (zoom.bottom - zoom.top) / all.stretch);
  const left = (zoom.left + zoom.right) / 2 - box.width / scale / 2;
  const top = (zoom.top + zoom.bottom) / 2 - box.height / (scale * all.stretch) / 2;
  return clampCamera({ left, top, scale, stretch: all.stretch }, shape, box);
}

/** The part that a camera shows, in weights. */
export function visiblePart(camera: Camera, shape: MapShape, box: Box): Zoom {
  const right = camera.left + box.width / camera.scale;
  const bottom = camera.top + box.height / (camera.scale * camera.stretch);
  return {
    left: Math.max(0, camera.left), top: Math.max(0, camera.top),
    right: Math.min(shape.keys, right), bottom: Math.min(shape.queries, bottom),
  };
}

/** The same picture in a box that lies elsewhere: what was seen stays where it was on the screen. */
export function reboxCamera(camera: Camera, from: Box, to: Box, shape: MapShape): Camera {
  const left = camera.left + (to.x - from.x) / camera.scale;
  const top = camera.top + (to.y - from.y) / (camera.scale * camera.stretch);
  return clampCamera({ ...camera, left, top }, shape, to);
}

/** Whether this camera shows all of the map. */
export const isWhole = (camera: Camera, shape: MapShape, box: Box): boolean =>
  camera.scale <= wholeCamera(shape, box).scale * 1.0001;

export const xOf = (camera: Camera, box: Box, key: number): number => box.x + (key - camera.left) * camera.scale;
export const yOf = (camera: Camera, box: Box, query: number): number =>
  box.y + (query - camera.top) * camera.scale * camera.stretch;

/** Nearer or farther around a point of the screen, which stays where it is. */
export function zoomCamera(camera: Camera, factor: number, x: number, y: number, shape: MapShape, box: Box): Camera {
  const { stretch } = camera;
  const scale = clampCamera({ ...camera, scale: camera.scale * factor }, shape, box).scale;
  const key = camera.left + (x - box.x) / camera.scale, query = camera.top + (y - box.y) / (camera.scale * stretch);
  const left = key - (x - box.x) / scale, top = query - (y - box.y) / (scale * stretch);
  return clampCamera({ left, top, scale, stretch }, shape, box);
}

/** As if the paper were pulled by so many pixels. */
export const panCamera = (camera: Camera, dx: number, dy: number, shape: MapShape, box: Box): Camera =>
  clampCamera(
    { ...camera, left: camera.left - dx / camera.scale, top: camera.top - dy / (camera.scale * camera.stretch) },
    shape, box,
  );

/** The camera, moved no farther than needed to show this place. */
export function cameraShowing(camera: Camera, place: Partial<MapPlace>, shape: MapShape, box: Box): Camera {
  const { right, bottom, left, top } = visiblePart(camera, shape, box);
  const need = (at: number | undefined, first: number, last: number): number =>
    at === undefined ? 0 : at < first ? at - first : at + 1 > last ? Math.min(at + 1 - last, at - first) : 0;
  const across = need(place.key, left, right), down = need(place.query, top, bottom);
  return clampCamera({ ...camera, left: camera.left + across, top: camera.top + down }, shape, box);
}

/** The weight under a point, null outside the map. */
export function cellUnder(camera: Camera, shape: MapShape, box: Box, x: number, y: number): MapPlace | null {
  if (x < box.x || y < box.y || x >= box.x + box.width || y >= box.y + box.height) return null;
  const key = Math.floor(camera.left + (x - box.x) / camera.scale);
  const query = Math.floor(camera.top + (y - box.y) / (camera.scale * camera.stretch));
  return key < 0 || query < 0 || key >= shape.keys || query >= shape.queries ? null : { query, key };
}

/** The finest level whose cells are at least one screen pixel on each side, with room for rounding. */
export const levelOf = (camera: Camera, ratio: number): number =>
  Math.max(0, Math.ceil(-Math.log2((camera.scale * Math.min(1, camera.stretch) * ratio) / 1.004)));

/** The level at which one tile holds all. */
export const overviewLevel = (shape: MapShape): number =>
  Math.max(0, Math.ceil(Math.log2(Math.max(shape.queries, shape.keys) / TILE)));

/** Tiles of a level that show this part, those in the middle first. */
export function tilesIn(zoom: Zoom, level: number): { row: number; column: number }[] {
  const side = TILE * 2 ** level;
  const last = (end: number): number => Math.ceil(end / side) - 1;
  const out: { row: number; column: number }[] = [];
  for (let row = Math.floor(zoom.top / side); row <= last(zoom.bottom); row++)
    for (let column = Math.floor(zoom.left / side); column <= last(zoom.right); column++) out.push({ row, column });
  const x = (zoom.left + zoom.right) / 2 / side - 0.5, y = (zoom.top + zoom.bottom) / 2 / side - 0.5;
  return out.sort((a, b) => Math.hypot(a.row - y, a.column - x) - Math.hypot(b.row - y, b.column - x));
}
