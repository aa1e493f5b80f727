/** The part of the map that is seen, in the room that there is; it moves by hand and follows the shared zoom. */
import type { Zoom } from "../../choose/choice";
import type { Size } from "../../paint/canvas";
import type { Gutters, Rooms } from "./axes";
import {
  type Box, type Camera, type MapPlace, type MapShape, cameraOf, cameraShowing, clampCamera, isWhole, panCamera,
  reboxCamera, visiblePart, wholeCamera, xOf, yOf, zoomCamera,
} from "./geometry";
import type { SharedZoom } from "./sharedZoom";

/** What the gutters leave. */
const boxIn = (gutters: Gutters, { width, height }: Size): Box => ({
  x: gutters.left, y: gutters.top, width: Math.max(20, width - gutters.left - gutters.right),
  height: Math.max(20, height - gutters.top - gutters.bottom),
});
const NONE: Gutters = { left: 0, top: 0, right: 0, bottom: 0, names: { query: 0, key: 0 } };

export class Viewport {
  camera: Camera | null = null; // null: there is nothing to see, or no room
  gutters: Gutters = NONE;
  box: Box = { x: 0, y: 0, width: 1, height: 1 };
  private shape: MapShape = { queries: 1, keys: 1 };
  private size: Size = { width: 0, height: 0 };
  private rooms: Rooms | null = null;
  private own: Zoom | null | undefined; // the zoom as which this camera was told

  constructor(private readonly zooming: SharedZoom, private readonly changed: () => void) {}

  /** A new shape, new names or another size: where names and cells go. Null: nowhere. */
  layOut(shape: MapShape | null, size: Size, rooms: Rooms | null): void {
    this.camera = null;
    this.rooms = shape === null ? null : rooms;
    if (shape === null || rooms === null) return;
    this.shape = shape;
    this.size = size;
    this.gutters = rooms.named;
    this.box = boxIn(this.gutters, size);
    this.follow();
  }

  /** Goes where the shared zoom is, unless it came from here. */
  follow(): void {
    const zoom = this.zooming.live.peek();
    if (this.rooms === null || (this.camera !== null && this.own === zoom)) return;
    this.own = zoom;
    this.camera = cameraOf(zoom, this.shape, this.box);
    this.makeRoom();
    if (this.camera !== null && zoom !== null) this.camera = cameraOf(zoom, this.shape, this.box);
  }

  seen(): Zoom | null {
    return this.camera === null ? null : visiblePart(this.camera, this.shape, this.box);
  }

  whole(): boolean {
    return this.camera === null || isWhole(this.camera, this.shape, this.box);
  }

  /** Each of these says whether anything changed. */
  showAll = (): boolean => this.to(wholeCamera(this.shape, this.box));
  zoom = (factor: number, x: number, y: number): boolean =>
    this.camera !== null && this.to(zoomCamera(this.camera, factor, x, y, this.shape, this.box));
  pan = (dx: number, dy: number): boolean =>
    this.camera !== null && this.to(panCamera(this.camera, dx, dy, this.shape, this.box));
  show = (place: Partial<MapPlace>): boolean =>
    this.camera !== null && this.to(cameraShowing(this.camera, place, this.shape, this.box));

  /** Nearer around this place where it is in sight, else around the middle. */
  step(factor: number, query: number | null, key: number | null): boolean {
    const { camera, box } = this;
    if (camera === null) return false;
    const inside = (at: number, from: number, size: number): number =>
      (at >= from && at <= from + size ? at : from + size / 2);
    const x = key === null ? -1 : xOf(camera, box, key + 0.5), y = query === null ? -1 : yOf(camera, box, query + 0.5);
    const around = { x: inside(x, box.x, box.width), y: inside(y, box.y, box.height) };
    const changed = this.zoom(factor, around.x, around.y);
    const inSight = { ...(around.x === x ? { key: key! } : {}), ...(around.y === y ? { query: query! } : {}) };
    return this.show(inSight) || changed; // and stays in sight whole
  }

  private to(next: Camera): boolean {
    const { camera } = this;
    if (camera === null || !Number.isFinite(next.scale + next.left + next.top)) return false;
    const near = (a: number, b: number): boolean => Math.abs(a - b) < 1e-9;
    if (near(next.scale, camera.scale) && near(next.left, camera.left) && near(next.top, camera.top)) return false;
    this.camera = clampCamera(next, this.shape, this.box);
    this.makeRoom();
    this.own = this.whole() ? null : this.seen();
    this.zooming.move(this.own ?? null);
    this.changed();
    return true;
  }

  /** Names take more room than numbers; the map below stays where it is when they come or go. */
  private makeRoom(): void {
    const { rooms, camera, size, shape } = this;
    if (rooms === null || camera === null) return;
    const always = wholeCamera(shape, boxIn(rooms.numbered, size)).scale >= rooms.from;
    const gutters = always || camera.scale >= rooms.from ? rooms.named : rooms.numbered;
    if (gutters === this.gutters) return;
    const box = boxIn(gutters, size);
    this.camera = this.whole() ? wholeCamera(shape, box) : reboxCamera(camera, this.box, box, shape);
    this.gutters = gutters;
    this.box = box;
  }
}
