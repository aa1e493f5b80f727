import { describe, expect, it } from "vitest";
import {
  diverging, divergingRamp, headColor, inkOn, luminance, ramp, rankAmong, scaleWeight, unscaleWeight, viridis, weightColor,
} from "../../src/paint/color";
import { DARK, LIGHT } from "../../src/paint/theme";

const hex = (color: string): [number, number, number] =>
  [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16)) as [number, number, number];
const contrast = (a: string, b: string): number => {
  const [x, y] = [luminance(...hex(a)), luminance(...hex(b))];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
};
const lightness = (bytes: Uint8ClampedArray): number[] =>
  Array.from({ length: 256 }, (_, i) => luminance(bytes[4 * i]!, bytes[4 * i + 1]!, bytes[4 * i + 2]!));

// How colours reach eyes without one kind of cone (Machado et al. 2009, severity 1), in linear light.
const EYES: Record<string, number[]> = {
  usual: [1, 0, 0, 0, 1, 0, 0, 0, 1],
  protan: [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
  deutan: [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
};
function lab(color: string, eye: number[]): [number, number, number] {
  const light = hex(color).map((x) => (x <= 10.31 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4));
  const [r, g, b] = [0, 3, 6].map(
    (i) => Math.max(0, eye[i]! * light[0]! + eye[i + 1]! * light[1]! + eye[i + 2]! * light[2]!)
  ) as [number, number, number];
  const f = (t: number): number => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116);
  const [x, y, z] = [
    f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505), f(0.2126 * r + 0.7152 * g + 0.0722 * b),
    f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089),
  ];
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

describe("the scale of weights", () => {
  it("starts at the ground and only gets darker on light, only brighter on dark", () => {
    const light = lightness(ramp(false)), dark = lightness(ramp(true));
    for (let i = 1; i < 256; i++) {
      expect(light[i]!).toBeLessThanOrEqual(light[i - 1]! + 1e-4);
      expect(dark[i]!).toBeGreaterThanOrEqual(dark[i - 1]! - 3e-4);
    }
    expect(light[0]! - light[255]!).toBeGreaterThan(0.9);
    expect(dark[255]! - dark[0]!).toBeGreaterThan(0.7);
  });
  it("is viridis in its upper part", () => {
    expect(viridis(0)).toBe("rgb(68, 1, 84)");
    expect(viridis(1)).toBe("rgb(253, 231, 37)");
    expect(weightColor(1, false)).toBe(viridis(0));
    expect(weightColor(1, true)).toBe(viridis(1));
    expect(weightColor(Number.NaN, true)).toBe(weightColor(0, true));
  });
});

describe("scaled", () => {
  it("is a share of the top, four decades, or a rank", () => {
    expect(scaleWeight(0.2, "linear", 0.4)).toBeCloseTo(0.5);
    expect(scaleWeight(0.9, "linear", 0.4)).toBe(1);
    expect(scaleWeight(0.0004, "log", 0.4)).toBeCloseTo(0.25);
    expect(scaleWeight(1e-9, "log", 0.4)).toBe(0);
    expect(scaleWeight(0.3, "rank", 1, [0.1, 0.2, 0.3, 0.9])).toBe(0.75);
    expect(rankAmong(0.05, [0.1, 0.2])).toBe(0);
    for (const scale of ["linear", "log", "rank"] as const) expect(scaleWeight(Number.NaN, scale, 1, [1])).toBe(0);
  });
  it("is undone by unscaled", () => {
    for (const weight of [0.003, 0.02, 0.4])
      for (const scale of ["linear", "log"] as const)
        expect(unscaleWeight(scaleWeight(weight, scale, 0.5), scale, 0.5)).toBeCloseTo(weight, 6);
    expect(unscaleWeight(0.75, "rank", 1, [0.1, 0.2, 0.3, 0.9])).toBe(0.3);
  });
});

describe("differences", () => {
  it("leave the ground in both directions, with different colours", () => {
    expect(diverging(0)).toBe("rgb(250, 250, 249)");
    expect(diverging(-1)).not.toBe(diverging(1));
    expect(diverging(Number.NaN)).toBe(diverging(0));
    for (const dark of [false, true]) {
      const light = lightness(divergingRamp(dark));
      for (let i = 1; i < 128; i++) {
        expect(Math.sign(light[i]! - light[i - 1]!) * (dark ? -1 : 1)).toBeGreaterThanOrEqual(0);
        expect(Math.sign(light[255 - i]! - light[256 - i]!) * (dark ? -1 : 1)).toBeGreaterThanOrEqual(0);
      }
    }
  });
});

describe("head colours", () => {
  it("stand out from the ground and from each other, also for colour-blind eyes", () => {
    for (const [dark, ground] of [[false, LIGHT.ground], [true, DARK.ground]] as const) {
      const colors = Array.from({ length: 12 }, (_, i) => headColor(i, dark));
      expect(new Set(colors).size).toBe(12);
      for (const color of colors) expect(contrast(color, ground)).toBeGreaterThan(3);
      for (const [name, eye] of Object.entries(EYES))
        colors.forEach((a, i) =>
          colors.slice(0, i).forEach((b) => {
            const [x, y] = [lab(a, eye), lab(b, eye)];
            expect(Math.hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]), `${a} ${b} ${name}`).toBeGreaterThan(10);
          }),
        );
    }
    expect(headColor(12, false)).toBe(headColor(0, false));
    expect(headColor(-1, true)).toBe(headColor(11, true));
  });
});

describe("themes", () => {
  it("keep text at 4.5 : 1, and numbers on every colour of the scale", () => {
    for (const theme of [LIGHT, DARK])
      for (const ink of [theme.ink, theme.pale, theme.query, theme.key, theme.warn])
        expect(contrast(ink, theme.ground), ink).toBeGreaterThan(4.5);
    for (const dark of [false, true]) {
      const bytes = ramp(dark);
      for (let i = 0; i < 256; i++) {
        const [r, g, b] = [bytes[4 * i]!, bytes[4 * i + 1]!, bytes[4 * i + 2]!];
        const ink = luminance(...hex(inkOn(r, g, b))), ground = luminance(r, g, b);
        expect((Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05)).toBeGreaterThan(4.5);
      }
    }
  });
});
