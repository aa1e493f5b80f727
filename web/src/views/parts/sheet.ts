/** Style sheets of views. */

/**
 * A style sheet for as long as the view stands, in the document or the shadow root that holds it. Constructed sheets
 * need no inline style, so a strict content policy lets them through.
 */
export function adoptStyle(el: HTMLElement, css: string, signal: AbortSignal): void {
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
