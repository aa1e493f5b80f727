/**
 * The still picture above an explorer in a notebook: it is what a saved or exported notebook has, and what is left where
 * the kernel is gone. Until the kernel answers it is all that is shown; then the explorer takes its place.
 */
import type { WidgetModel } from "../hosts/jupyter";

const KEY = /^[0-9a-f]{8,64}$/;

/** The class of the still picture that Python showed before this widget; null where there is none in the page. */
export function stillPictureOf(model: WidgetModel): string | null {
  const key = String(model.get("still") ?? "");
  if (!KEY.test(key)) return null;
  const name = `regard-still-${key}`;
  return document.getElementsByClassName(name).length > 0 ? name : null;
}

/** Calls `alive` once, when the kernel gives its first sign. A busy one does so when it is free, a lost one never. */
export function greetKernel(model: WidgetModel, alive: () => void, gone: AbortSignal): void {
  const ask = Math.floor(Math.random() * 2 ** 40); // as questions are counted: other views hear this answer too
  const heard = (content: unknown): void => {
    if ((content as { answer?: unknown } | null)?.answer !== ask) return;
    model.off("msg:custom", heard);
    if (!gone.aborted) alive();
  };
  model.on("msg:custom", heard);
  gone.addEventListener("abort", () => model.off("msg:custom", heard), { once: true });
  try {
    model.send({ ask, what: "hello" });
  } catch {
    // Nobody is there: the still picture stays, and says what to do.
  }
}

/** Hides the still picture while this view is there, wherever and whenever it is drawn. */
export function hideStillPicture(name: string, gone: AbortSignal): void {
  const style = document.head.appendChild(document.createElement("style"));
  const rules = [`.${name}`, `.jp-OutputArea-child:has(.${name})`]; // the second leaves no gap in a JupyterLab
  style.textContent = rules.map((rule) => `${rule} { display: none !important; }`).join("\n");
  gone.addEventListener("abort", () => style.remove(), { once: true });
}
