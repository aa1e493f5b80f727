import { describe, expect, it } from "vitest";
import { meaning, type Pressed, takes } from "../../src/shell/keyCommands";

const press = (key: string, part: Partial<Pressed> = {}): Pressed =>
  ({ key, ctrlKey: false, altKey: false, metaKey: false, shiftKey: false, isComposing: false, defaultPrevented: false,
    ...part });

describe("keys", () => {
  it("mean what the help says", () => {
    expect(meaning(press("ArrowDown"), null)).toEqual({ do: "move", down: 1, right: 0 });
    expect(meaning(press("ArrowLeft", { shiftKey: true }), null)).toEqual({ do: "move", down: 0, right: -10 });
    expect(meaning(press("["), null)).toEqual({ do: "head", by: -1 });
    expect(meaning(press("}", { shiftKey: true }), null)).toEqual({ do: "layer", by: 1 });
    expect(meaning(press("9"), null)).toEqual({ do: "view", number: 8 });
    expect(meaning(press("+", { shiftKey: true }), null)).toMatchObject({ do: "zoom" });
    expect(meaning(press("0"), null)).toEqual({ do: "whole" });
    expect(meaning(press("/"), null)).toEqual({ do: "text" });
    expect(meaning(press("?", { shiftKey: true }), null)).toEqual({ do: "help" });
    expect(meaning(press("Escape"), null)).toEqual({ do: "release" });
    for (const key of ["a", "Enter", " ", "Tab", "toString", "constructor", "__proto__",
      "F5"]) expect(meaning(press(key), null)).toBeNull();
  });

  it("never fire while somebody types", () => {
    for (const tagName of ["TEXTAREA", "SELECT", "INPUT", "textarea"])
      for (const key of ["1", "[", "?", "/", "ArrowUp", "+"]) expect(meaning(press(key), { tagName })).toBeNull();
    expect(meaning(press("?"), { tagName: "DIV", isContentEditable: true })).toBeNull();
    expect(meaning(press("2"), { tagName: "INPUT", type: "number" })).toBeNull();
    expect(meaning(press("1", { isComposing: true }), null)).toBeNull();
    expect(meaning(press("ArrowUp", { defaultPrevented: true }), null)).toBeNull();
  });

  it("leave a slider its arrows and a box its space", () => {
    expect(meaning(press("ArrowUp"), { tagName: "INPUT", type: "range" })).toBeNull();
    expect(meaning(press("2"), { tagName: "INPUT", type: "range" })).toEqual({ do: "view", number: 1 });
    expect(meaning(press("ArrowUp"), { tagName: "INPUT", type: "checkbox" })).toMatchObject({ do: "move" });
    expect(takes({ tagName: "BUTTON" })).toBe("none");
  });

  it("take nothing from the browser, and know AltGr", () => {
    expect(meaning(press("+", { ctrlKey: true }), null)).toBeNull();
    expect(meaning(press("0", { metaKey: true }), null)).toBeNull();
    expect(meaning(press("ArrowLeft", { altKey: true }), null)).toBeNull();
    expect(meaning(press("1", { altKey: true }), null)).toBeNull();
    expect(meaning(press("[", { ctrlKey: true }), null)).toBeNull();
    expect(meaning(press("[", { ctrlKey: true, altKey: true }), null)).toEqual({ do: "head", by: -1 });
    expect(meaning(press("]", { altKey: true }), null)).toEqual({ do: "head", by: 1 });
  });
});
