/** A small panel by the pointer: what is looked at, and its numbers. Text only. */
import type { Theme } from "../../paint/theme";
import { made } from "../parts/element";
import { card } from "../parts/tip";

export interface TipLine {
  readonly name: string;
  readonly value: string;
}
export interface TipText {
  readonly query: string | null;
  readonly key: string | null;
  readonly lines: readonly TipLine[];
}

export interface Tip {
  readonly show: (text: TipText, x: number, y: number, theme: Theme) => void;
  readonly hide: () => void;
}

/** A tooltip inside `el`, which it never leaves. */
export function tip(el: HTMLElement): Tip {
  const { show, hide } = card(el);
  return {
    show: ({ query, key, lines }, x, y, theme) => show(
      x, y,
      made("div", { fontWeight: "600" },
        query !== null && made("bdi", { color: theme.query }, query), query !== null && key !== null && " → ",
        key !== null && made("bdi", { color: theme.key }, key)),
      made("div", { display: "grid", gridTemplateColumns: "auto 1fr", columnGap: "12px" },
        ...lines.flatMap(({ name, value }) => [made("bdi", { color: theme.pale }, name), made("bdi", {}, value)])),
    ),
    hide,
  };
}
