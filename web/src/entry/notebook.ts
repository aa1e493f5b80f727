/** The explorer in a notebook's cell: the kernel answers, a shadow root keeps the notebook's styles out. */
import { FIRST } from "../choose/choice";
import { START, writeAddress } from "../shell/address";
import type { Address } from "../shell/host";
import { preferredLanguage } from "../language/language";
import { mount } from "../shell/mount";
import { openRemoteSource } from "../trace/remoteSource";
import type { TraceInfo } from "../trace/source";
import { askKernel, type WidgetModel } from "../hosts/jupyter";
import { greetKernel, hideStillPicture, stillPictureOf } from "./stillPicture";

const PAUSE = 300; // milliseconds before the kernel is told what is picked now

/** Fills `el` as soon as the kernel is there; what is returned takes everything away again. */
export function render({ model, el }: { readonly model: WidgetModel; readonly el: HTMLElement }): () => void {
  const gone = new AbortController();
  const still = stillPictureOf(model);
  let leave: (() => void) | null = null;
  const begin = (): void => {
    if (still !== null) hideStillPicture(still, gone.signal);
    leave = explore(model, el, gone);
  };
  if (still === null) begin();
  else greetKernel(model, begin, gone.signal);
  return () => {
    leave?.();
    gone.abort();
  };
}

function explore(model: WidgetModel, el: HTMLElement, gone: AbortController): () => void {
  const frame = el.appendChild(document.createElement("div"));
  frame.style.height = `${Number(model.get("height")) || 560}px`;
  frame.dataset["lmSuppressShortcuts"] = "true"; // else JupyterLab takes our keys for its own
  for (const kind of ["keydown", "keyup", "contextmenu"] as const) {
    frame.addEventListener(kind, (event) => event.stopPropagation(), { signal: gone.signal });
  }
  const info = JSON.parse(String(model.get("info"))) as TraceInfo;
  const leave = mount(frame.attachShadow({ mode: "open" }), {
    source: openRemoteSource(askKernel(model, gone.signal), info),
    server: null,
    notebook: true,
    address: widgetAddress(model, gone.signal),
    language: preferredLanguage(navigator.languages),
  });
  return () => {
    leave();
    frame.remove();
  };
}

/** Where the widget stands: it begins where Python said, and a second view of it begins where the first is. */
function widgetAddress(model: WidgetModel, gone: AbortSignal): Address {
  const number = (name: string): number => Math.max(0, Number(model.get(name)) || 0);
  const begin = { ...START, picked: { ...FIRST, layer: number("layer"), head: number("head") } };
  let hash = String(model.get("place") || "") || (Number(model.get("layer")) < 0 ? "" : writeAddress(begin));
  let timer: ReturnType<typeof setTimeout> | undefined;
  gone.addEventListener("abort", () => clearTimeout(timer), { once: true });
  return {
    read: () => hash,
    write: (now) => {
      hash = now;
      clearTimeout(timer);
      timer = setTimeout(() => {
        model.set("place", hash);
        model.save_changes();
      }, PAUSE);
    },
    listen: () => undefined, // a cell has no back and forward
  };
}
