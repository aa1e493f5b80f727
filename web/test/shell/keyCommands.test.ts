import { describe, expect, it } from "vitest";
import { commandOf, type KeyPress, keysTakenBy } from "../../src/shell/keyCommands";

const press = (key: string, part: Partial<KeyPress> = {}): KeyPress =>
  ({ key, ctrlKey: false, altKey: false, metaKey: false, shiftKey: false, isComposing: false, defaultPrevented: false,
    ...part });

describe("keys", () => {
  it("mean what the help says", () => {
    expect(commandOf(press("ArrowDown"), null)).toEqual({ do: "move", down: 1, right: 0 });
    expect(commandOf(press("ArrowLeft", { shiftKey: true }), null)).toEqual({ do: "move", down: 0, right: -10 });
    expect(commandOf(press("["), null)).toEqual({ do: "head", by: -1 });
    expect(commandOf(press("}", { shiftKey: true }), null)).toEqual({ do: "layer", by: 1 });
    expect(commandOf(press("9"), null)).toEqual({ do: "view", number: 8 });
    expect(commandOf(press("+", { shiftKey: true }), null)).toMatchObject({ do: "zoom" });
    expect(commandOf(press("0"), null)).toEqual({ do: "whole" });
    expect(commandOf(press("/"), null)).toEqual({ do: "text" });
    expect(commandOf(press("?", { shiftKey: true }), null)).toEqual({ do: "help" });
    expect(commandOf(press("Escape"), null)).toEqual({ do: "release" });
    for (const key of ["a", "Enter", " ", "Tab", "toString", "constructor", "__proto__",
      "F5"]) expect(commandOf(press(key), null)).toBeNull();
  });

  it("never fire while somebody types", () => {
    for (const tagName of ["TEXTAREA", "SELECT", "INPUT", "textarea"])
      for (const key of ["1", "[", "?", "/", "ArrowUp", "+"]) expect(commandOf(press(key), { tagName })).toBeNull();
    expect(commandOf(press("?"), { tagName: "DIV", isContentEditable: true })).toBeNull();
    expect(commandOf(press("2"), { tagName: "INPUT", type: "number" })).toBeNull();
    expect(commandOf(press("1", { isComposing: true }), null)).toBeNull();
    expect(commandOf(press("ArrowUp", { defaultPrevented: true }), null)).toBeNull();
  });

  it("leave a slider its arrows and a box its space", () => {
    expect(commandOf(press("ArrowUp"), { tagName: "INPUT", type: "range" })).toBeNull();
    expect(commandOf(press("2"), { tagName: "INPUT", type: "range" })).toEqual({ do: "view", number: 1 });
    expect(commandOf(press("ArrowUp"), { tagName: "INPUT", type: "checkbox" })).toMatchObject({ do: "move" });
    expect(keysTakenBy({ tagName: "BUTTON" })).toBe("none");
  });

  it("take nothing from the browser, and know AltGr", () => {
    expect(commandOf(press("+", { ctrlKey: true }), null)).toBeNull();
    expect(commandOf(press("0", { metaKey: true }), null)).toBeNull();
    expect(commandOf(press("ArrowLeft", { altKey: true }), null)).toBeNull();
    expect(commandOf(press("1", { altKey: true }), null)).toBeNull();
    expect(commandOf(press("[", { ctrlKey: true }), null)).toBeNull();
    expect(commandOf(press("[", { ctrlKey: true, altKey: true }), null)).toEqual({ do: "head", by: -1 });
    expect(commandOf(press("]", { altKey: true }), null)).toEqual({ do: "head", by: 1 });
  });
});
