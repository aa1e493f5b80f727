/** The flow of one token as it is drawn: asks for it, lays it out, paints it. */
import { NEAREST } from "../../choose/choice";
import { errorText } from "../../language/errorText";
import type { Flow } from "../../trace/source";
import { type ViewFrame, viewFrame, perFrame, textMeasure } from "../parts/dom";
import { type TokenNames, tokenNames, shortLayerNames } from "../parts/names";
import { scroller } from "../parts/scroller";
import type { Scene } from "../parts/view";
import { type TracedToken, flows, rows, strongest, tracedToken } from "./requests";
import { type FlowControls, flowControls } from "./controls";
import { LONGEST, type FlowHit, type PartName, type Plan, planOf, scrollToToken } from "./layout";
import { type FlowDrawing, FONT, paintFlow } from "./paint";

type NamesByPart = Readonly<Record<PartName, TokenNames>>;

export class FlowView {
  readonly frame: ViewFrame;
  readonly scroll: ReturnType<typeof scroller>;
  readonly repaint: () => void;
  drawing: FlowDrawing | null = null;
  hovered: FlowHit | null = null;
  readonly controls: FlowControls;
  private readonly flow: ReturnType<typeof flows>;
  private readonly raw: ReturnType<typeof rows>;
  private readonly measure: (text: string) => number;
  private readonly hasValues: boolean;
  private names: { readonly of: string; readonly parts: NamesByPart } | null = null;
  private spoken = "";
  private shown = { query: -1, near: 0 };

  constructor(readonly scene: Scene) {
    const { el, source, signal } = scene;
    this.frame = viewFrame(el, signal);
    this.scroll = scroller(this.frame.stage, signal);
    this.repaint = perFrame(() => this.paint(), signal);
    this.flow = flows(source, this.repaint, signal);
    this.raw = rows(source, this.repaint, signal);
    this.hasValues = source.info.layers.every((layer) => layer.values);
    this.measure = textMeasure(this.scroll.surface.context, FONT);
    this.controls = flowControls(scene, this.frame, {
      hasValues: this.hasValues, by: () => this.by(), zoom: (factor) => this.zoom(factor),
    });
  }

  private by(): "weights" | "values" {
    return this.hasValues ? this.scene.choice.drawn.value.by : "weights";
  }

  /** Which token is traced now. */
  traced(): TracedToken | null {
    return tracedToken(this.scene.source.info, this.scene.choice.picked.value);
  }

  /** Nearer or farther; the middle of what is in sight stays there. */
  zoom(factor: number): void {
    const { choice } = this.scene, { scroll } = this, { width } = scroll.surface.size();
    const { near: before } = choice.drawn.value, middle = (scroll.left() + width / 2) / before;
    const near = Math.max(1, Math.min(NEAREST, Math.round(before * factor * 1000) / 1000)); // as an address holds it
    choice.draw({ near });
    this.paint();
    scroll.to(Math.max(0, middle * near - scroll.surface.size().width / 2), scroll.top());
  }

  paint(): void {
    const { scene, frame, flow } = this, { say } = scene, at = this.traced();
    frame.dress(scene.theme());
    if (at === null) return frame.alert(say("flow.empty"));
    flow.ask({ query: at.query, batch: at.raw.batch, residual: scene.choice.drawn.value.residual, by: this.by() });
    this.raw.ask({ ...at.raw, query: at.query });
    if (flow.error !== null) return frame.alert(say("flow.failed", { why: errorText(flow.error) }));
    frame.alert("");
    if (flow.answer === null) return this.paintWaiting();
    this.drawing = this.compose(flow.answer, at);
    paintFlow(this.scroll.surface.context, this.drawing);
    this.tell(this.drawing);
  }

  private compose(flow: Flow, at: TracedToken): FlowDrawing {
    const { scene, scroll } = this, { width, height } = scroll.surface.size(), { near, scale } = scene.choice.drawn.value;
    const named = this.namesOf(flow), labels = this.labelsOf(flow), query = this.flow.of?.query ?? at.query;
    const label = Math.min(Math.max(90, width * 0.2), Math.max(...labels.map(this.measure)) + 22);
    const name = Math.max(named.target.widest(LONGEST), named.source.widest(LONGEST));
    const plan = planOf({ width, height }, flow.lines, named.source.count, flow.n, near, label, name);
    scroll.extent(plan.width > width ? plan.width : 0, plan.height);
    this.scrollTo(plan, query, near, width);
    const isStale = this.raw.of === null || this.raw.of.query !== query;
    return {
      plan, flow, raw: isStale ? null : this.raw.answer, rawPart: at.part, query, names: named, labels,
      over: this.hovered, scale, theme: scene.theme(), width, height, left: scroll.left(), top: scroll.top(),
      words: this.words(),
    };
  }

  /** Brings the token into sight when it, or the zoom, is another one. */
  private scrollTo(plan: Plan, query: number, near: number, width: number): void {
    if (this.shown.query === query && this.shown.near === near) return;
    this.shown = { query, near };
    const { scroll } = this, target = plan.parts[plan.parts.length - 1]!;
    scroll.to(scrollToToken(plan, target, query, scroll.left(), width), scroll.top());
  }

  private namesOf({ targetTokens, sourceTokens, n, m, source }: Flow): NamesByPart {
    const sources = source === null ? 0 : m, of = `${targetTokens} ${sourceTokens} ${n} ${sources}`;
    const { tokens } = this.scene.source.info;
    const make = (which: number, count: number): TokenNames => tokenNames(tokens[which] ?? null, count, this.measure);
    if (this.names?.of !== of)
      this.names = { of, parts: { target: make(targetTokens, n), source: make(sourceTokens, sources) } };
    return this.names.parts;
  }

  /** The names of the lines, from the inputs down to the token. */
  private labelsOf({ layers, lines }: Flow): string[] {
    const { say } = this.scene;
    const into = (layer: string): string => say(/^\d+$/.test(layer) ? "flow.intoLayer" : "flow.into", { layer });
    return [say("flow.inputs"), ...shortLayerNames(layers).slice(1).map(into), say("flow.token")].slice(-lines);
  }

  private words(): FlowDrawing["words"] {
    const { say, source } = this.scene, { of, error } = this.raw;
    const rawAt = { layer: of === null ? "" : source.info.layers[of.layer]!.name, head: of?.head ?? 0 };
    return {
      largest: say("flow.largest"), rollout: say("flow.rollout"), source: say("flow.source"),
      target: say("flow.target"), raw: error !== null ? errorText(error) : say("flow.raw", rawAt),
    };
  }

  /** The token's name, and a sentence for screen readers. */
  private tell({ flow, names: named, query }: FlowDrawing): void {
    const { say } = this.scene, token = named.target.whole(query);
    this.controls.token.textContent = say("flow.of", { token, query });
    const error = (100 * flow.error).toFixed(1);
    this.controls.sampled.textContent = flow.error > 0 ? say("flow.sampled", { error }) : "";
    const list = strongest(flow, 0, 5).map(({ part, token: from, share }) =>
      say("flow.share", { token: named[part].whole(from), share: (100 * share).toFixed(0) }));
    const sentence = say("flow.sentence", { token, list: list.join(say("flow.comma")) });
    if (sentence !== this.spoken && !this.flow.busy) this.frame.live.textContent = this.spoken = sentence;
  }

  private paintWaiting(): void {
    const { context } = this.scroll.surface, { width, height } = this.scroll.surface.size();
    context.clearRect(0, 0, width, height);
    context.font = FONT;
    context.fillStyle = this.scene.theme().pale;
    context.textAlign = "left";
    context.fillText(this.scene.say("flow.loading"), 16, 28);
  }
}
