/** The controls above the lines: which heads, from which weight on, and whether the first or special tokens are hidden. */
import { type ViewFrame, slider } from "../parts/dom";
import { styled } from "../parts/element";
import type { Scene } from "../parts/view";
import { chips } from "./chips";
import type { HeadsState } from "./state";

/** Builds the controls; what is returned shows them as they are now. */
export function headControls(
  { choice, say, theme, signal }: Scene, { bar }: ViewFrame,
): (state: HeadsState | null) => void {
  const picker = chips(choice, signal);
  const threshold = slider(
    100, (share) => choice.draw({ threshold: Math.round(share * share * 1000) / 1000 }), signal,
  );
  const thresholdWords = styled("span"), hideWords = styled("span");
  const thresholdValue = styled("output", { minWidth: "42px", fontVariantNumeric: "tabular-nums" });
  const hide = styled("input", { margin: "0 4px 0 0", accentColor: "var(--view-focus)" });
  hide.type = "checkbox";
  hide.addEventListener("change", () => choice.draw({ hide: hide.checked }), { signal });
  const line = { display: "inline-flex", alignItems: "center", gap: "6px" };
  bar.append(
    picker.el, styled("label", line, thresholdWords, threshold, thresholdValue),
    styled("label", { ...line, gap: "0" }, hide, hideWords),
  );
  return (state) => {
    const now = choice.drawn.value;
    picker.show(state?.headCount ?? 0, choice.picked.value, theme(), say);
    thresholdWords.textContent = say("heads.threshold");
    threshold.value = String(Math.round(Math.sqrt(now.threshold) * 100));
    threshold.setAttribute("aria-valuetext", now.threshold.toFixed(3));
    thresholdValue.textContent = now.threshold.toFixed(3);
    hide.checked = now.hide;
    hideWords.textContent = say(state?.sink ?? true ? "heads.hideFirst" : "heads.hideSpecial");
  };
}
