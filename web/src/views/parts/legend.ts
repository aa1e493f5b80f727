/** The colour scale of a picture, from nothing to its top, with both ends written. */
import { ramp } from "../../paint/color";
import { label, type Markup, node } from "../../paint/svg";
import type { Theme } from "../../paint/theme";
import { styled } from "./element";

const WIDE = 96, HIGH = 10;

export interface Legend {
  readonly el: HTMLElement;
  readonly show: (low: string, high: string, theme: Theme) => void;
}

export function legend(): Legend {
  const bar = styled("canvas", { width: `${WIDE}px`, height: `${HIGH}px`, border: "1px solid var(--view-line)" });
  bar.width = 256;
  bar.height = 1;
  const [low, high] = [styled("span"), styled("span")];
  const row = { display: "inline-flex", alignItems: "center", gap: "6px", fontVariantNumeric: "tabular-nums" };
  const el = styled("span", row, low, bar, high);
  let painted: boolean | null = null;
  return {
    el,
    show: (least, most, theme) => {
      low.textContent = least;
      high.textContent = most;
      if (painted === theme.dark) return;
      painted = theme.dark;
      const pen = bar.getContext("2d"), pixels = pen?.createImageData(256, 1);
      pixels?.data.set(ramp(theme.dark));
      if (pixels !== undefined) pen?.putImageData(pixels, 0, 0);
    },
  };
}

/** The same for a figure, at a place. */
export function legendSvg(x: number, y: number, low: string, high: string, theme: Theme): Markup {
  const colors = ramp(theme.dark), steps = 32, left = x + 8 * low.length;
  return node("g", {},
    label(x, y + 9, low, { fill: theme.pale }),
    ...Array.from({ length: steps }, (_, i) => {
      const at = 4 * Math.round((i / (steps - 1)) * 255);
      const fill = `rgb(${colors.slice(at, at + 3).join(",")})`;
      return node("rect", { x: left + (i * WIDE) / steps, y, width: WIDE / steps + 0.5, height: HIGH, fill });
    }),
    label(left + WIDE + 6, y + 9, high, { fill: theme.pale }),
  );
}
