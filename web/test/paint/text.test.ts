import { describe, expect, it } from "vitest";
import { clipText, isolateText, graphemes, pieces, shortenText, markInvisible } from "../../src/paint/text";

const measure = (text: string): number => 10 * graphemes(text).length;

describe("visible", () => {
  it("leaves text as it is, in every script", () => {
    for (const text of ["cat", "猫", "مرحبا", "👩‍👩‍👧", "می‌خواهم", "</script>", "a b", "�"])
      expect(markInvisible(text)).toBe(text);
  });
  it("marks what cannot be seen", () => {
    expect(markInvisible(" the")).toBe("␣the");
    expect(markInvisible("  ")).toBe("␣␣");
    expect(markInvisible("")).toBe("∅");
    expect(markInvisible("\n")).toBe("⏎");
    expect(markInvisible("\0\t\r\x7f\x01")).toBe("⟨NUL⟩⇥⟨CR⟩⟨DEL⟩⟨0001⟩");
    expect(markInvisible("a\u202eb\u2066c\u2028d\ufeff")).toBe("a⟨RLO⟩b⟨LRI⟩c⟨LS⟩d⟨BOM⟩");
    expect(markInvisible("x\ud800y")).toBe("x⟨D800⟩y");
    expect(markInvisible("\u200d")).toBe("⟨ZWJ⟩");
    expect(markInvisible("\x85\x90")).toBe("⟨NEL⟩⟨0090⟩");
  });
  it("keeps marks apart so that they can be pale", () => {
    expect(pieces(" a\n")).toEqual([{ text: "␣", mark: true }, { text: "a", mark: false }, { text: "⏎", mark: true }]);
  });
  it("can be held apart from its neighbours' direction", () => {
    expect(isolateText("مرحبا")).toBe("\u2068مرحبا\u2069");
  });
});

describe("clip", () => {
  it("cuts in the middle and fits", () => {
    expect(clipText("cat", 30, measure)).toBe("cat");
    expect(clipText("internationalisation", 110, measure)).toBe("inter…ation");
    for (let width = 20; width < 200; width += 10)
      expect(measure(clipText("internationalisation", width, measure))).toBeLessThanOrEqual(Math.max(width, 20));
  });
  it("never cuts a letter apart and keeps at least one", () => {
    expect(clipText("👩‍👩‍👧👨‍👩‍👦👩‍👩‍👧", 20, measure)).toBe("👩‍👩‍👧…");
    expect(clipText("👩‍👩‍👧", 1, measure)).toBe("👩‍👩‍👧");
    expect(clipText("abc", 1, measure)).toBe("a…");
  });
  it("is quick with ten thousand letters", () => {
    let asked = 0;
    const cut = clipText("x".repeat(9999) + "y", 70, (text) => (asked++, measure(text)));
    expect(cut).toBe("xxx…xxy");
    expect(asked).toBeLessThan(20);
    expect(shortenText("x".repeat(10000))).toHaveLength(300 + "… (10000)".length);
    expect(shortenText("cat\n")).toBe("cat⏎");
  });
});
