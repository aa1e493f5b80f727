/** The heads of a layer as they are shown, painted once at their final size; scrolling then only copies them. */
import type { Scale } from "../../paint/color";
import { hatch } from "../../paint/hatch";
import type { Theme } from "../../paint/theme";
import type { LayerInfo } from "../../trace/source";
import { boxOf } from "./boxes";
import type { Pictures } from "./pictures";

const KEPT = 160; // layers

/** How large and in which colours. */
export interface RowLook {
  readonly cell: number; // CSS pixels
  readonly ratio: number; // screen pixels per CSS pixel
  readonly scale: Scale;
  readonly theme: Theme;
}

export class RowImages {
  private readonly kept = new Map<number, { readonly how: string; readonly row: HTMLCanvasElement }>();

  constructor(private readonly layers: readonly LayerInfo[], private readonly pictures: Pictures) {}

  /** All heads of a layer beside each other, head h from h × cell × ratio on; null until its pictures are here. */
  of(layer: number, look: RowLook): HTMLCanvasElement | null {
    const strip = this.pictures.strip(layer, look.scale, look.theme.dark), thumbs = this.pictures.of(layer);
    if (strip === null || thumbs === undefined) return null;
    const how = `${this.pictures.how(look.scale, look.theme.dark)} ${look.cell} ${look.ratio}`;
    const images = this.kept.get(layer);
    if (images?.how === how) return images.row;
    if (this.kept.size >= KEPT) this.kept.clear();
    const row = images?.row ?? document.createElement("canvas"), side = Math.round(look.cell * look.ratio);
    row.width = side * thumbs.heads; // also empties it
    row.height = side;
    this.kept.set(layer, { how, row });
    const pen = row.getContext("2d");
    if (pen === null) return row;
    const [, , queries, keys] = this.layers[layer]!.shape, box = boxOf(look.cell, queries, keys);
    pen.scale(look.ratio, look.ratio);
    pen.imageSmoothingEnabled = false;
    pen.strokeStyle = look.theme.line;
    const blocked = hatch(pen, look.theme, "blocked");
    for (let head = 0; head < thumbs.heads; head++) {
      const x = head * look.cell + box.x;
      pen.fillStyle = blocked;
      pen.fillRect(x, box.y, box.width, box.height);
      pen.drawImage(strip, head * thumbs.columns, 0, thumbs.columns, thumbs.rows, x, box.y, box.width, box.height);
      pen.strokeRect(x - 0.5, box.y - 0.5, box.width + 1, box.height + 1);
    }
    return row;
  }
}
