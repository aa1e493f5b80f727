/** The shared selection as the trace beside sees it: its own layer and head, and the tokens of the same characters. */
import { Choice, type DrawSettings, type Hover, NOTHING, type Selection } from "../../choose/choice";
import type { TraceInfo } from "../../trace/source";
import type { Alignment } from "./align";

/** What was pointed at or picked in the trace beside, and has no counterpart in the first. */
interface OwnPlace {
  readonly query: number | null;
  readonly key: number | null;
  readonly since: Selection; // until something else is picked
}

/** The layer and head of the trace beside: those that were chosen for it, else the same as in the first. */
export function besideHead(picked: Selection, info: TraceInfo): { readonly layer: number; readonly head: number } {
  const wanted = picked.beside ?? picked;
  const layer = Math.min(wanted.layer, Math.max(0, info.layers.length - 1));
  const heads = info.layers[layer]?.shape[1] ?? 1;
  return { layer, head: Math.min(wanted.head, heads - 1) };
}

export class BesideChoice extends Choice {
  private own: OwnPlace | null = null;
  private isPointing = false;

  constructor(
    private readonly first: Choice, private readonly info: TraceInfo, private readonly alignment: () => Alignment,
    until: AbortSignal,
  ) {
    super(first.picked.peek(), first.drawn.peek());
    first.watch(() => {
      this.drawn.value = first.drawn.value;
    }, until);
    first.watch(() => {
      this.picked.value = this.translate(first.picked.value);
    }, until);
    first.watch(() => this.followHover(first.hover.value), until);
  }

  private translate(picked: Selection): Selection {
    const { there, isSame } = this.alignment();
    if (this.own?.since !== picked) this.own = null;
    return {
      ...picked, ...besideHead(picked, this.info), batch: 0, zoom: isSame ? picked.zoom : null,
      query: this.own?.query ?? there(picked.query), key: this.own?.key ?? there(picked.key),
    };
  }

  private followHover({ query, key }: Hover): void {
    if (this.isPointing) return;
    const { there } = this.alignment(), { layer, head } = this.picked.peek();
    this.hover.value = query === null && key === null ? NOTHING : { layer, head, query: there(query), key: there(key) };
  }

  override pick(part: Partial<Selection>): void {
    const { back, isSame } = this.alignment(), { first } = this, { layer, head } = this.picked.peek();
    const isHead = part.layer !== undefined || part.head !== undefined;
    const isPlace = part.query !== undefined || part.key !== undefined;
    const { query, key } = { ...this.picked.peek(), ...part };
    first.pick({
      ...(isHead && { beside: { layer: part.layer ?? layer, head: part.head ?? head } }),
      ...(isPlace && { query: back(query), key: back(key) }),
      ...(part.zoom !== undefined && isSame && { zoom: part.zoom }),
    });
    if (!isPlace || (back(query) !== null || query === null) && (back(key) !== null || key === null)) return;
    this.own = { query, key, since: first.picked.peek() }; // [CLS] and its kind are picked on this side only
    this.picked.value = this.translate(first.picked.peek());
  }

  override draw(part: Partial<DrawSettings>): void {
    this.first.draw(part);
  }

  override point(part: Partial<Hover> | null): void {
    const { back } = this.alignment(), { layer, head } = this.first.picked.peek();
    this.isPointing = part !== null;
    this.hover.value = part === null ? NOTHING : { ...NOTHING, ...part };
    this.first.point(part && { layer, head, query: back(part.query ?? null), key: back(part.key ?? null) });
  }
}
