/** Small pieces of the edit view. Text reaches the page only as text. */

/** An element of this class with these children. */
export function made<Name extends keyof HTMLElementTagNameMap>(
  name: Name, className = "", ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  if (className !== "") element.className = className;
  element.append(...children);
  return element;
}

/** A button that says what it does. */
export function button(words: string, pressed: () => void, className = ""): HTMLButtonElement {
  const found = made("button", className, words);
  found.type = "button";
  found.addEventListener("click", pressed);
  return found;
}

/** A token that keeps its own direction. */
export const token = (text: string, which: "query" | "key" | "" = ""): HTMLElement => made("bdi", which, text);
