/** Puts the studio into an element or a shadow root. The hosts call this and nothing else of the shell. */
import { render } from "preact";
import type { Host } from "./host";
import { startStudio } from "./begin";
import { listenToKeys } from "./shortcuts";
import { Studio } from "./state";
import { Frame } from "./studio";
import css from "./style.css?inline";

export type { Address, Host, NamedSource } from "./host";

/** Lays the style over the document or shadow root that the studio stands in, and takes it away when it goes. */
function adopt(root: HTMLElement | ShadowRoot, until: AbortSignal): void {
  const scope = root.getRootNode() as Document | ShadowRoot;
  const view = root.ownerDocument.defaultView;
  if (view === null || !("adoptedStyleSheets" in scope)) return;
  const sheet = new view.CSSStyleSheet();
  sheet.replaceSync(css);
  scope.adoptedStyleSheets = [...scope.adoptedStyleSheets, sheet];
  until.addEventListener("abort", () => {
    scope.adoptedStyleSheets = scope.adoptedStyleSheets.filter((one) => one !== sheet);
  }, { once: true });
}

/** Shows a studio in `root`; what it gives back takes the studio away, with everything that listens. */
export function mount(root: HTMLElement | ShadowRoot, host: Host): () => void {
  const end = new AbortController();
  const inside = root instanceof ShadowRoot; // a part of somebody else's page; else the page is ours
  const element = root.ownerDocument.createElement("div");
  element.className = inside ? "regard cell" : "regard whole";
  element.tabIndex = -1;
  if (inside) root.host.setAttribute("data-lm-suppress-shortcuts", "true"); // JupyterLab leaves our keys to us
  adopt(root, end.signal);
  root.append(element);
  const studio = new Studio(host, end.signal);
  listenToKeys(studio, element, inside);
  startStudio(studio, element, inside);
  render(<Frame studio={studio} />, element);
  return () => {
    if (end.signal.aborted) return;
    end.abort();
    studio.stop?.abort();
    render(null, element);
    element.remove();
  };
}
