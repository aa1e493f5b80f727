/** A picture with the weights of one query over its patches, and what stands around it. */
import { signal } from "@preact/signals";
import { type Surface, surface } from "../../paint/canvas";
import { fourDigits } from "../../paint/digits";
import { shortenText } from "../../paint/text";
import type { ShownGlimpses } from "../../trace/messages";
import { type Row, tokensOf } from "../../trace/source";
import { h } from "../parts/element";
import { setColours } from "../parts/plainStyle";
import type { Scene } from "../parts/view";
import { chipsOf, outsideWords, legendOf } from "./surroundings";
import { type PictureLook, type PatchWeights, paintFrame, weigh } from "./paint";
import { glimpsePicture } from "./glimpses";
import { type PictureFrame, type Reading, canRollOut, framesIn, isWindowed } from "./patches";

const EDGE = 4; // pixels around the picture

export class ImageView {
  readonly stage = h("div", { class: "stage", tabindex: 0, role: "application" });
  readonly root: HTMLElement;
  readonly surface: Surface;
  reading: Reading | null = null; // how the picked layer reads the picture; null where it does not
  weighed: PatchWeights | null = null;
  picture: HTMLImageElement | null = null;
  isPictureLost = false;
  readonly isRolled = signal(false); // all layers and heads together, in place of one head
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
    return this.scene.say(this.rollsOut() ? "image.rolled" : byRow ? "image.query" : "image.key", { name });
  }

  /** Whether rollout is shown: somebody chose it, and the layer in hand has the tokens of all others. */
  rollsOut(): boolean {
    return this.isRolled.value && this.reading?.by === "row" && this.reading.asks !== null
      && canRollOut(this.scene.source.info, this.scene.choice.picked.peek().layer);
  }

  /** The way of a model that looks by glimpses; null of others. */
  glimpses(): ShownGlimpses | null {
    const { source, choice } = this.scene, { layer } = choice.picked.peek(), way = source.info.picture?.glimpses;
    return way && way.places.length === source.info.layers[layer]?.shape[2] && !this.reading?.asks ? way : null;
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
      glimpses: this.glimpses(), glimpse: this.place(),
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
    this.read.textContent = say(this.glimpses() ? "image.readGlimpses" : this.rollsOut() ? "image.readRollout"
      : by === "column" ? "image.readKey" : asks ? "image.read" : "image.readWords");
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
    return [...this.rolloutControl(), h("label", {}, tick, say("image.beside")), ...strength];
  }

  /** One head, or all of them together. */
  private rolloutControl(): HTMLElement[] {
    const { say, source, choice } = this.scene;
    if (!this.reading?.asks || !canRollOut(source.info, choice.picked.peek().layer)) return [];
    const list = h("select", { "data-do": "rollout", "aria-label": say("image.weights") },
      h("option", { value: "" }, say("image.ofHead")), h("option", { value: "all" }, say("image.ofAll")));
    list.value = this.isRolled.peek() ? "all" : "";
    list.addEventListener("change", () => (this.isRolled.value = list.value !== ""));
    return [h("label", {}, say("image.weights"), list)];
  }

  private showChips({ by, chips: tokens }: Reading): void {
    const { say, choice } = this.scene, { chips } = this;
    const [kind, which] = by === "row" ? (["query", "queries"] as const) : (["key", "keys"] as const);
    chips.setAttribute("aria-label", say(by === "row" ? "image.tokens" : "image.keyTokens"));
    const isFocused = chips.contains((chips.getRootNode() as Document | ShadowRoot).activeElement);
    chips.replaceChildren(...chipsOf({
      tokens, at: this.place(), kind, name: (token) => this.tokenName(which, token), say,
      pick: (token) => choice.pick({ [kind]: token }),
      picture: (token) => {
        const way = this.glimpses();
        return way && this.picture ? glimpsePicture(this.picture, way, token) : null;
      },
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
    const { weights, allowed } = this.rollsOut() ? await this.rollOut(at, stop)
      : reading.by === "row" ? await source.row(where, at, stop) : await source.column(where, at, stop);
    if (stop.aborted) return;
    this.weights = weights;
    this.weighed = weigh(reading.grid, weights, allowed);
    this.update();
  }

  /** How much of each token of the input a token of the last layer is made of. */
  private async rollOut(query: number, stop: AbortSignal): Promise<Pick<Row, "weights" | "allowed">> {
    const { source, choice } = this.scene, { residual } = choice.drawn.peek(), { batch } = choice.picked.peek();
    const { target, n } = await source.flow({ query, batch, residual, by: "weights" }, stop);
    return { weights: target.slice(0, n), allowed: new Uint8Array(n).fill(1) };
  }
}
