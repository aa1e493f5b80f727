/** What a key means. No shortcut fires while somebody types, and none takes a key from the browser. */
export type Command =
  | { readonly do: "move"; readonly down: number; readonly right: number }
  | { readonly do: "head"; readonly by: number }
  | { readonly do: "layer"; readonly by: number }
  | { readonly do: "view"; readonly number: number } // from 0
  | { readonly do: "zoom"; readonly factor: number }
  | { readonly do: "whole" }
  | { readonly do: "text" }
  | { readonly do: "help" }
  | { readonly do: "release" };

/** The part of a KeyboardEvent that decides. */
export interface KeyPress {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly altKey: boolean;
  readonly metaKey: boolean;
  readonly shiftKey: boolean;
  readonly isComposing: boolean;
  readonly defaultPrevented: boolean;
}

const ZOOM = 1.5;
const MOVES: Readonly<Record<string, readonly [number, number]>> = {
  ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
};
const SIGNS: Readonly<Record<string, Command>> = {
  "[": { do: "head", by: -1 }, "]": { do: "head", by: 1 }, "{": { do: "layer", by: -1 }, "}": { do: "layer", by: 1 },
  "+": { do: "zoom", factor: ZOOM }, "=": { do: "zoom", factor: ZOOM }, "-": { do: "zoom", factor: 1 / ZOOM },
  "0": { do: "whole" }, "/": { do: "text" }, "?": { do: "help" },
};

/** The part of an element that decides. */
export interface Target {
  readonly tagName?: string;
  readonly type?: string;
  readonly isContentEditable?: boolean;
}

/** What an element does with keys itself: "all" where text is typed, "arrows" where arrows already mean something. */
export function keysTakenBy(element: Target | null): "all" | "arrows" | "none" {
  const tag = element?.tagName?.toUpperCase() ?? "";
  if (element?.isContentEditable === true || tag === "TEXTAREA" || tag === "SELECT") return "all";
  if (tag !== "INPUT") return "none";
  const type = element?.type ?? "text";
  if (["checkbox", "button", "submit", "file", "reset"].includes(type)) return "none";
  return ["range", "radio", "color"].includes(type) ? "arrows" : "all";
}

/** The command of a key, null where it is somebody else's. */
export function commandOf(event: KeyPress, target: Target | null): Command | null {
  if (event.isComposing || event.defaultPrevented || event.metaKey) return null;
  if (event.key === "Escape") return { do: "release" };
  const taken = keysTakenBy(target);
  const bare = !event.ctrlKey && !event.altKey;
  if (taken === "all") return null;
  const move = Object.hasOwn(MOVES, event.key) ? MOVES[event.key] : undefined;
  if (move !== undefined) {
    const far = event.shiftKey ? 10 : 1;
    return bare && taken === "none" ? { do: "move", down: move[0] * far, right: move[1] * far } : null;
  }
  // Brackets are typed with AltGr (Ctrl and Alt) or Option on many keyboards; Ctrl alone belongs to the browser.
  const sign = Object.hasOwn(SIGNS, event.key) ? SIGNS[event.key] : undefined;
  if (sign !== undefined) return bare || (event.altKey && "[]{}/?".includes(event.key)) ? sign : null;
  return bare && /^[1-9]$/.test(event.key) ? { do: "view", number: Number(event.key) - 1 } : null;
}
