/** The colours of a panel, made anew only where what they depend on has changed. */
import type { Tile } from "../../trace/source";
import type { PlacedTile } from "./cells";
import { type Colouring, colouring } from "./colours";
import type { Head } from "./head";
import type { PanelOptions } from "./panelState";
import type { Scene } from "../parts/view";
import { nameOf } from "./tiles";

export class PanelColours {
  current: Colouring | null = null;
  private madeFor = "";

  constructor(private readonly scene: Scene, private readonly options: PanelOptions) {}

  /** For a head of which these tiles are drawn, at this level; `overview` is all of it in one tile, where it is here. */
  of(head: Head, drawn: readonly PlacedTile[], overview: Tile | undefined, level: number): Colouring {
    const { pool, scale } = this.scene.choice.drawn.peek(), { dark } = this.scene.theme();
    const top = this.options.top?.() ?? null;
    const near = drawn.filter(({ held }) => held.at.level === level).map(({ held }) => held);
    const visible = pool === "max" && scale !== "rank"
      ? ""
      : near.map(({ at, tile }) => `${nameOf(at)} ${tile.sampled}`).sort().join();
    const name = [
      head.layer, head.batch, head.head, pool, scale, dark, top, overview?.sampled,
      overview === undefined && near.length, visible,
    ].join();
    if (this.current === null || this.madeFor !== name)
      this.current = colouring(
        overview === undefined ? [] : [overview], near.map(({ tile }) => tile), pool, scale, dark,
        this.options.diverging ?? false, top,
      );
    this.madeFor = name;
    return this.current;
  }
}
