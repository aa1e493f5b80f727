/** A picture with the weights of one query over its patches, and what stands around it. */
import { type Surface, surface } from "../../paint/canvas";
import { fourDigits } from "../../paint/digits";
import { shortenText } from "../../paint/text";
import { tokensOf } from "../../trace/source";
import { h } from "../parts/element";
import { setColours } from "../parts/plainStyle";
import type { Scene } from "../parts/view";
import { chipsOf, outsideWords, legendOf } from "./surroundings";
import { type PictureLook, type PatchWeights, paintFrame, weigh } from "./paint";
import { type PictureFrame, type Reading, framesIn, isWindowed } from "./patches";

const EDGE = 4; // pixels around the picture

export class ImageView {
  readonly stage = h("div", { class: "stage", tabindex: 0, role: "application" });
  readonly root: HTMLElement;
  readonly surface: Surface;
  reading: Reading | null = null; // how the picked layer reads the picture; null where it does not
  weighed: PatchWeights | null = null;
  picture: HTMLImageElement | null = null;
  isPictureLost = false;
  cursor = -1; // the patch under the pointer or the keyboard
  frames: readonly PictureFrame[] = [];
  private weights: Float32Array | null = null; // of all tokens, also those outside the picture
  private isBeside = false; // the picture alone stands beside the weighed one
  private strength = 0.6;
  private readonly bar = h("div", { class: "bar" });
  private readonly chips = h("div", { class: "chips", role: "group" });
  private readonly status = h("p", { class: "status", "aria-live": "polite" });
  private readonly note = h("p", { class: "pale note" });
  private readonly legend = h("div", { class: "legend" });
  private readonly read = h("p", { class: "pale" });

  constructor(readonly scene: Scene) {
    const foot = h("div", { class: "foot" }, this.legend, this.status);
    this.root = h("div", { class: "rg rg-image" }, this.read, this.bar, this.chips, this.stage, foot, this.note);
    scene.el.replaceChildren(this.root);
    this.surface = surface(this.stage, scene.signal);
  }

  /** The token whose weights are shown. */
  place(): number {
    const { query, key } = this.scene.choice.picked.peek();
    return (this.reading?.by === "row" ? query : key) ?? this.reading?.first ?? 0;
  }

  private tokenName(which: "queries" | "keys", at: number): string {
    const { layer, batch } = this.scene.choice.picked.peek();
    return tokensOf(this.scene.source.info, layer, batch, which)?.shown[at] ?? String(at);
  }

  private patchName(patch: number): string {
    const { columns } = this.reading!.grid; // from 0 on, as its token is called everywhere else
    return this.scene.say("image.patch", { row: Math.floor(patch / columns), column: patch % columns });
  }

  /** "query cat" or "key cat" */
  chosenName(): string {
    const at = this.place(), byRow = this.reading?.by === "row";
    const patch = byRow ? this.reading?.asks?.patchOf.get(at) : undefined;
    const name = patch !== undefined ? this.patchName(patch)
      : shortenText(this.tokenName(byRow ? "queries" : "keys", at), 24);
    return this.scene.say(byRow ? "image.query" : "image.key", { name });
  }

  /** Why there is nothing to draw. */
  absence(): string {
    const { source, choice, say } = this.scene;
    return say(isWindowed(source.info, choice.picked.peek().layer) ? "image.windows" : "image.none");
  }

  look(): PictureLook {
    const { picked, hover, drawn } = this.scene.choice, { grid, by, asks } = this.reading!;
    const hovered = by === "row" ? hover.peek().key : hover.peek().query;
    const pinned = by === "row" ? picked.peek().key : picked.peek().query;
    const patchOf = (token: number | null): number => (token === null ? -1 : (grid.patchOf.get(token) ?? -1));
    return {
      theme: this.scene.theme(), grid, image: this.picture, weighed: this.weighed, scale: drawn.peek().scale,
      strength: this.strength, asked: by === "row" ? (asks?.patchOf.get(this.place()) ?? -1) : -1,
      pinned: patchOf(pinned), over: this.cursor >= 0 ? this.cursor : patchOf(hovered),
    };
  }

  /** The proportions of the picture, or of the grid where there is none. */
  form(): { readonly width: number; readonly height: number } {
    const { picture } = this.scene.source.info;
    if (picture && picture.width > 0 && picture.height > 0) return picture;
    return { width: this.reading!.grid.columns, height: this.reading!.grid.rows };
  }

  draw = (): void => {
    if (!this.reading) return;
    const { context, size } = this.surface, { width, height } = size();
    context.clearRect(0, 0, width, height);
    const inner = { width: width - 2 * EDGE, height: height - 2 * EDGE };
    this.frames = framesIn(inner, this.form(), this.isBeside ? 2 : 1, 16)
      .map((one) => ({ ...one, x: one.x + EDGE, y: one.y + EDGE }));
    const look = this.look();
    this.frames.forEach((frame, i) => paintFrame(context, frame, look, this.isBeside && i === 0));
    this.status.textContent = this.statusOf(look.over);
  };

  private statusOf(patch: number): string {
    const { say } = this.scene, { weighed } = this;
    if (patch < 0 || !weighed) return this.chosenName();
    const name = this.patchName(patch), weight = fourDigits(weighed.weights[patch]!);
    const words = weighed.allowed[patch] ? say("image.weight", { name, weight }) : say("image.blocked", { name });
    return `${this.chosenName()} · ${words}`;
  }

  /** The picture, and all that stands around it. */
  update(): void {
    const { say, source, choice, theme } = this.scene, { by, asks, grid } = this.reading!;
    this.read.textContent = say(by === "column" ? "image.readKey" : asks ? "image.read" : "image.readWords");
    this.stage.setAttribute("aria-label", say("image.patches"));
    this.bar.replaceChildren(...this.controls());
    this.showChips(this.reading!);
    const outside = this.weights && by === "row"
      ? outsideWords(this.weights, grid, (key) => this.tokenName("keys", key), say) : "";
    const missing = this.isPictureLost ? say("image.lost") : source.info.picture ? "" : say("image.plain");
    this.note.textContent = [missing, outside].filter(Boolean).join(" ");
    const { weighed, picture } = this, { scale } = choice.drawn.peek();
    this.legend.replaceChildren(...(weighed ? legendOf(weighed, picture !== null, scale, theme().dark, say) : []));
    this.draw();
  }

  private controls(): HTMLElement[] {
    const { say } = this.scene;
    const tick = h("input", { type: "checkbox", "data-do": "beside" });
    tick.checked = this.isBeside;
    tick.addEventListener("change", () => {
      this.isBeside = tick.checked;
      this.draw();
    });
    const slide = h("input", { type: "range", min: 0, max: 1, step: 0.05, value: this.strength, "data-do": "strength" });
    slide.addEventListener("input", () => {
      this.strength = Number(slide.value);
      this.draw();
    });
    const strength = this.picture ? [h("label", {}, say("image.strength"), slide)] : [];
    return [h("label", {}, tick, say("image.beside")), ...strength];
  }

  private showChips({ by, chips: tokens }: Reading): void {
    const { say, choice } = this.scene, { chips } = this;
    const [kind, which] = by === "row" ? (["query", "queries"] as const) : (["key", "keys"] as const);
    chips.setAttribute("aria-label", say(by === "row" ? "image.tokens" : "image.keyTokens"));
    const isFocused = chips.contains((chips.getRootNode() as Document | ShadowRoot).activeElement);
    chips.replaceChildren(...chipsOf({
      tokens, at: this.place(), kind, name: (token) => this.tokenName(which, token), say,
      pick: (token) => choice.pick({ [kind]: token }),
    }));
    if (isFocused) chips.querySelector<HTMLElement>("[aria-pressed=true]")?.focus();
  }

  /** A sentence in place of the picture. */
  showMessage(words: string, isAlert: boolean): void {
    const message = h("p", { class: "message", role: isAlert ? "alert" : "status" }, words);
    this.root.remove();
    const box = h("div", { class: "rg" }, message);
    this.scene.el.replaceChildren(box);
    setColours(box, this.scene.theme());
  }

  showLoading(): void {
    this.status.textContent = this.scene.say("image.loading");
  }

  /** The picture again, where a sentence stood. */
  showPicture(): void {
    const { el } = this.scene;
    if (!this.root.isConnected || this.root.parentElement !== el) el.replaceChildren(this.root);
  }

  forgetWeights(): void {
    this.weighed = this.weights = null;
  }

  /** Asks for the weights of a token and shows them. */
  async load(reading: Reading, at: number, stop: AbortSignal): Promise<void> {
    const { source, choice } = this.scene, { layer, batch, head } = choice.picked.peek(), where = { layer, batch, head };
    const { weights, allowed } = reading.by === "row" ? await source.row(where, at, stop)
      : await source.column(where, at, stop);
    if (stop.aborted) return;
    this.weights = weights;
    this.weighed = weigh(reading.grid, weights, allowed);
    this.update();
  }
}
