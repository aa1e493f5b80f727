/** All heads of a model as they are drawn: laid out, asked for as they come into sight, painted once per frame. */
import { errorText } from "../../language/errorText";
import type { LayerInfo } from "../../trace/source";
import { type ViewFrame, viewFrame, perFrame } from "../parts/dom";
import { styled } from "../parts/element";
import { legend } from "../parts/legend";
import { scroller } from "../parts/scroller";
import type { Scene } from "../parts/view";
import { orderControls } from "./controls";
import { type At, type HeadGrid, extent, gridOf, sizeOf } from "./layout";
import { MeasureStore, sortHeads } from "./measures";
import { type ModelDrawing, FONT, visibleCells, paintModel } from "./paint";
import { Pictures } from "./pictures";
import { RowImages } from "./rows";
import { labelsOf, measureName, rule, valueOf } from "./words";

export class ModelView {
  readonly frame: ViewFrame;
  readonly scroll: ReturnType<typeof scroller>;
  readonly repaint: () => void;
  readonly pictures: Pictures;
  readonly measured: MeasureStore;
  readonly updateControls: () => void;
  readonly layers: readonly LayerInfo[];
  readonly all: readonly At[]; // every head, in the model's order
  drawing: ModelDrawing | null = null;
  private readonly heads: readonly number[]; // of each layer
  private readonly rows: RowImages;
  private readonly scale = legend();
  private readonly readWords = styled("span");
  private readonly ruleWords = styled("span");
  private readonly belowWords = styled("span");

  constructor(readonly scene: Scene) {
    const { el, source, signal } = scene;
    this.layers = source.info.layers;
    this.heads = this.layers.map((layer) => layer.shape[1]);
    this.all = this.heads.flatMap((count, layer) => Array.from({ length: count }, (_, head) => ({ layer, head })));
    this.frame = viewFrame(el, signal);
    this.scroll = scroller(this.frame.stage, signal);
    this.repaint = perFrame(() => this.paint(), signal);
    this.pictures = new Pictures(source, this.repaint, signal);
    this.rows = new RowImages(this.layers, this.pictures);
    this.measured = new MeasureStore(source, () => {
      this.updateControls();
      this.repaint();
    }, signal);
    this.updateControls = orderControls(scene, this.frame, this.measured);
    this.frame.foot.append(this.readWords, this.scale.el, this.ruleWords, this.belowWords);
  }

  get batch(): number {
    return this.scene.choice.picked.value.batch;
  }

  /** The head that is picked, within the model. */
  picked(): At {
    const { layer: wanted, head } = this.scene.choice.picked.value;
    const layer = Math.max(0, Math.min(wanted, this.layers.length - 1));
    return { layer, head: Math.max(0, Math.min(head, (this.heads[layer] ?? 1) - 1)) };
  }

  /** What the legend says besides its scale. */
  notes(): string[] {
    return [this.ruleWords, this.belowWords].map((some) => some.textContent ?? "").filter((text) => text !== "");
  }

  paint(): void {
    const { scene, frame, pictures, scroll } = this;
    frame.dress(scene.theme());
    if (this.all.length === 0) return frame.alert(scene.say("model.empty"));
    const drawing = this.drawing = this.compose(), ratio = scroll.surface.ratio();
    const inSight = new Set(Array.from(visibleCells(drawing), ({ at }) => at.layer));
    pictures.want([...inSight], this.batch, sizeOf(drawing.grid, ratio));
    frame.alert(pictures.error === null ? "" : errorText(pictures.error));
    paintModel(scroll.surface.context, drawing, this.rows);
    this.tell();
  }

  private compose(): ModelDrawing {
    const { scene, scroll, layers } = this, { surface } = scroll, { sort, scale } = scene.choice.drawn.value;
    const labels = labelsOf(layers, scene.say), grid = this.layOut(labels);
    const { layer, head } = scene.choice.hover.value;
    return {
      grid, ...surface.size(), ratio: surface.ratio(), left: scroll.left(), top: scroll.top(), layers, labels,
      picked: this.picked(), hover: layer === null || head === null ? null : { layer, head }, scale,
      theme: scene.theme(), value: (at) => valueOf(sort, this.measured.value(at, this.batch, sort)),
      headWord: scene.say("head"),
    };
  }

  private layOut(labels: ReturnType<typeof labelsOf>): HeadGrid {
    const { context, size } = this.scroll.surface, { sort, falling } = this.scene.choice.drawn.value;
    context.font = FONT;
    const widest = Math.max(36, ...labels.flat().map((text) => context.measureText(text).width));
    const label = Math.round(Math.min(Math.max(72, size().width * 0.22), widest + 16));
    const value = (at: At): number | null => this.measured.value(at, this.batch, sort);
    const order = sort === "" ? null : sortHeads(this.all, value, falling);
    const lay = (): HeadGrid => gridOf(size().width, size().height, this.heads, label, order);
    const grid = lay();
    this.scroll.extent(extent(grid).width, extent(grid).height);
    return size().width === this.drawing?.width ? grid : lay(); // a scrollbar takes its part
  }

  private tell(): void {
    const { pictures, layers, scene } = this, { say } = scene, { sort } = scene.choice.drawn.value;
    this.readWords.textContent = say("model.read");
    this.scale.show("0", String(pictures.top), scene.theme());
    this.ruleWords.textContent = pictures.busy ? say("model.loading") : rule(layers, pictures, say);
    this.belowWords.textContent = sort === "" ? "" : say("model.below", { measure: measureName(sort, say) });
  }
}
