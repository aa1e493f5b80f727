/** Where glances are blocked: the whole map of the head in hand where it is small, and the strongest keys of a row. */
import { signal } from "@preact/signals";
import { sameAttention } from "../../choose/move";
import { strongest } from "../../trace/rowFacts";
import type { Row, Tile } from "../../trace/source";
import { h } from "../parts/element";
import type { Scene } from "../parts/view";
import { type Glance, SMALL, blockMap, blockRow } from "./block";
import type { BlockScope, EditState } from "./editState";
import { toggleBlock } from "./edits";
import { nameOf } from "./words";

const ROW = 8; // keys of a row

export class BlockSection {
  readonly element: HTMLElement;
  private readonly how = h("p", { class: "pale" });
  private readonly row = h("div");
  private readonly scope = h("select");
  private readonly map: ReturnType<typeof blockMap>;
  private readonly tile = signal<{ readonly of: string; readonly tile: Tile } | null>(null);
  private readonly asked = signal<{ readonly of: string; readonly row: Row } | null>(null);

  constructor(private readonly scene: Scene, private readonly state: EditState) {
    const { choice, say, signal: until } = scene;
    this.map = blockMap(scene, this.block);
    for (const value of ["head", "layer", "all"] as const)
      this.scope.append(h("option", { value }, say(`edit.block.in.${value}`)));
    this.scope.addEventListener("change", () => state.set({ scope: this.scope.value as BlockScope }));
    this.element = h(
      "section", {}, h("h2", {}, say("edit.block")), this.how,
      h("label", {}, `${say("edit.block.where")} `, this.scope), this.map.box, this.row,
    );
    choice.watch(() => {
      this.scope.value = state.now.value.scope;
    }, until);
    this.ask();
    choice.watch(() => this.show(), until);
  }

  private block = (glance: Glance): void => {
    const { choice, source } = this.scene, { layer, head } = choice.picked.value, { scope } = this.state.now.value;
    const layers = scope === "all" ? sameAttention(source.info, layer) : [layer];
    const heads = scope === "head" ? [head] : null;
    this.state.change((edits) => toggleBlock(edits, layers, heads, glance.query, glance.key));
    choice.pick(glance);
  };

  /** Which head is in hand, and whether all of its map is small enough to click in. */
  private place(): { readonly of: string; readonly isSmall: boolean } {
    const { choice, source } = this.scene, { layer, head, batch } = choice.picked.value;
    const [, , queries, keys] = source.info.layers[layer]?.shape ?? [0, 0, 0, 0];
    return { of: `${layer} ${head} ${batch}`, isSmall: queries > 0 && queries <= SMALL && keys <= SMALL };
  }

  /** Asks for the small map and for the row in hand when another is picked. */
  private ask(): void {
    const { choice, source, signal: until } = this.scene;
    let tileOf = "", rowOf = "";
    choice.watch(() => {
      const { layer, head, batch, query } = choice.picked.value, { of, isSmall } = this.place();
      if (isSmall && tileOf !== of) {
        tileOf = of;
        source.tile({ layer, batch, head, level: 0, row: 0, column: 0 }, false, until)
          .then((tile) => tileOf === of && (this.tile.value = { of, tile }), () => undefined);
      }
      const name = `${of} ${query}`;
      if (query === null || rowOf === name) return;
      rowOf = name;
      source.row({ layer, batch, head }, query, until)
        .then((row) => rowOf === name && (this.asked.value = { of: name, row }), () => undefined);
    }, until);
  }

  private show(): void {
    const { choice, say } = this.scene, { layer, head, batch, query, key } = choice.picked.value;
    const { of, isSmall } = this.place(), { edits } = this.state.now.value, tile = this.tile.value;
    this.how.textContent = isSmall ? say("edit.block.how", { layer, head })
      : query === null ? say("edit.block.pick") : "";
    this.map.box.hidden = !isSmall;
    if (isSmall && tile?.of === of) this.map.paint({ layer, batch, head }, tile.tile, edits, { query, key });
    this.row.replaceChildren();
    const loaded = this.asked.value;
    if (query !== null && loaded?.of === `${of} ${query}`) this.showRow(loaded.row, query);
  }

  private showRow(row: Row, query: number): void {
    const { choice, say, source } = this.scene, { layer, head, batch, key } = choice.picked.value;
    const best = strongest(row, ROW);
    if (key !== null && row.allowed[key] === 1 && !best.some((one) => one.key === key))
      best.push({ key, weight: row.weights[key]! });
    const name = nameOf(source.info, layer, batch, "queries", query);
    this.row.append(
      h("p", { class: "pale" }, say("edit.block.row", { query: name })),
      blockRow(this.scene, { layer, batch, head }, query, best, row, this.state.now.value.edits, this.block),
    );
  }
}
