/** Elements from plain calls. Strings become text nodes, never markup. */
export type Child = Node | string | null | undefined | false;
export type Style = Readonly<Partial<Record<keyof CSSStyleDeclaration, string>>>;

type Heard = {
  readonly [name in keyof HTMLElementEventMap as `on${name}`]?: (event: HTMLElementEventMap[name]) => void;
};
type Props = Heard & { readonly style?: Style } & { readonly [attribute: string]: unknown };

/**
 * An element: `on…` are listeners, `style` are single styles (a strict content policy lets them through), all others
 * are attributes: `true` is one without a value, false, null and undefined are left out.
 */
export function h<Name extends keyof HTMLElementTagNameMap>(
  name: Name, props: Props = {}, ...children: readonly Child[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(props)) {
    if (key === "style") Object.assign(element.style, value);
    else if (typeof value === "function") element.addEventListener(key.slice(2), value as EventListener);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, String(value));
  }
  element.append(
    ...children.filter((child): child is Node | string => child instanceof Node || typeof child === "string")
  );
  return element;
}

/** An element with this style and these children. */
export const styled = <Name extends keyof HTMLElementTagNameMap>(
  name: Name, style: Style = {}, ...children: readonly Child[]
): HTMLElementTagNameMap[Name] => h(name, { style }, ...children);
