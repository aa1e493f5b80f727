/** Text stands out from its ground: at least 4.5 : 1 in both themes, by the formula of WCAG 2. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { DARK, LIGHT, type Theme } from "../../src/paint/theme";

const css = readFileSync(`${import.meta.dirname}/../../src/shell/style.css`, "utf8");

function luminance(colour: string): number {
  const parts = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255);
  const [r, g, b] =
    parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
const contrast = (a: string, b: string): number => {
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y) as [number, number];
  return (light + 0.05) / (dark + 0.05);
};

describe.each([["light", LIGHT], ["dark", DARK]] as [string, Theme][])("the %s theme", (_, theme) => {
  it.each(["ink", "pale", "query", "key", "warn", "focus"] as const)("%s can be read on ground and raised", (name) => {
    expect(contrast(theme[name], theme.ground)).toBeGreaterThanOrEqual(4.5);
    expect(contrast(theme[name], theme.raised)).toBeGreaterThanOrEqual(4.5);
  });
});

describe("the style", () => {
  it("has no colour of its own but shadows, and no text below 12 pixels", () => {
    expect(css.match(/#[0-9a-f]{3,8}\b/gi)?.filter((colour) => colour !== "#000") ?? []).toEqual([]);
    const sizes = [...css.matchAll(/font(?:-size)?:[^;{]*?(\d+)px/g)].map((found) => Number(found[1]));
    expect(sizes.length).toBeGreaterThan(10);
    expect(Math.min(...sizes)).toBeGreaterThanOrEqual(12);
  });
  it("fetches nothing", () => {
    expect(css).not.toMatch(/url\(|@import|https?:/);
  });
  it("moves nothing for readers who want it still", () => {
    const still = css.slice(0, css.indexOf("prefers-reduced-motion: no-preference"));
    expect(still).not.toMatch(/animation|transition/);
  });
});
