/** A small panel by the pointer: what is looked at, and its numbers. Text only. */
import type { Theme } from "../../paint/theme";
import { styled } from "../parts/element";
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

export interface MapTip {
  readonly show: (text: TipText, x: number, y: number, theme: Theme) => void;
  readonly hide: () => void;
}

/** A tooltip inside `el`, which it never leaves. */
export function mapTip(el: HTMLElement): MapTip {
  const { show, hide } = card(el);
  return {
    show: ({ query, key, lines }, x, y, theme) => show(
      x, y,
      styled("div", { fontWeight: "600" },
        query !== null && styled("bdi", { color: theme.query }, query), query !== null && key !== null && " → ",
        key !== null && styled("bdi", { color: theme.key }, key)),
      styled("div", { display: "grid", gridTemplateColumns: "auto 1fr", columnGap: "12px" },
        ...lines.flatMap(({ name, value }) => [styled("bdi", { color: theme.pale }, name), styled("bdi", {}, value)])),
    ),
    hide,
  };
}
