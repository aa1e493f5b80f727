/** Elements from plain calls. Strings become text nodes, never markup. */
export type Child = Node | string | null | undefined | false;

type Heard = {
  readonly [name in keyof HTMLElementEventMap as `on${name}`]?: (event: HTMLElementEventMap[name]) => void;
};
type Props = Heard & { readonly [attribute: string]: unknown };

/** An element: `on…` are listeners, `true` is an attribute without a value, false, null and undefined are left out. */
export function h<Name extends keyof HTMLElementTagNameMap>(
  name: Name, props: Props = {}, ...children: readonly Child[]
): HTMLElementTagNameMap[Name] {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(props)) {
    if (typeof value === "function") element.addEventListener(key.slice(2), value as EventListener);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, String(value));
  }
  element.append(
    ...children.filter((child): child is Node | string => child instanceof Node || typeof child === "string")
  );
  return element;
}

/**
 * A style sheet for as long as the view stands, in the document or the shadow root that holds it. Constructed sheets
 * need no inline style, so a strict content policy lets them through.
 */
export function dress(el: HTMLElement, css: string, signal: AbortSignal): void {
  const put = (): void => {
    if (signal.aborted) return;
    const root = el.getRootNode() as Document | ShadowRoot;
    const home = "adoptedStyleSheets" in root ? root : document;
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(css);
    home.adoptedStyleSheets = [...home.adoptedStyleSheets, sheet];
    const remove = (): void => {
      home.adoptedStyleSheets = home.adoptedStyleSheets.filter((one) => one !== sheet);
    };
    signal.addEventListener("abort", remove, { once: true });
  };
  if (el.isConnected) put();
  else queueMicrotask(put); // a host may fill the element first and hang it into the page afterwards
}
