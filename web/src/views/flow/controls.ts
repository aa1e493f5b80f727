/** What stands above and below the flow: the token, the residual share, how it is weighed, zoom, and words. */
import { MOST_RESIDUAL } from "../../choose/choice";
import { type ViewFrame, button, fillSelect, select, slider } from "../parts/dom";
import { styled } from "../parts/element";
import type { Scene } from "../parts/view";

const STEPS = 18; // of the slider

export interface FlowControls {
  readonly token: HTMLElement; // the name of the token that is traced
  readonly sampled: HTMLElement; // how sure the shares are, as long as they are not exact
  readonly update: () => void; // words and values as they are now
}

export interface FlowSettings {
  readonly hasValues: boolean; // of every layer, so that weights can be multiplied by them
  readonly by: () => "weights" | "values";
  readonly zoom: (factor: number) => void;
}

export function flowControls(
  { choice, say, signal }: Scene, { bar, foot }: ViewFrame, settings: FlowSettings,
): FlowControls {
  const residualWords = styled("span"), byWords = styled("span");
  const residualValue = styled("output", { minWidth: "32px", fontVariantNumeric: "tabular-nums" });
  const share = slider(
    STEPS, (moved) => choice.draw({ residual: Math.round(moved * MOST_RESIDUAL * 100) / 100 }), signal,
  );
  const by = select((value) => choice.draw({ by: value === "values" ? "values" : "weights" }), signal);
  const nearer = button(() => settings.zoom(2), signal), farther = button(() => settings.zoom(0.5), signal);
  nearer.textContent = "+";
  farther.textContent = "−";
  const line = { display: "inline-flex", alignItems: "center", gap: "6px" };
  const token = styled("strong", {
    maxWidth: "240px", overflow: "hidden", textOverflow: "ellipsis", whiteSpace: "nowrap",
  });
  const sampled = styled("span", { color: "var(--view-warn)" });
  bar.append(
    token, sampled, styled("label", line, residualWords, share, residualValue), styled("label", line, byWords, by),
    styled("span", { ...line, gap: "3px" }, farther, nearer),
  );

  const update = (): void => {
    const { residual } = choice.drawn.value;
    residualWords.textContent = say("flow.residual");
    share.value = String(Math.round((residual / MOST_RESIDUAL) * STEPS));
    share.setAttribute("aria-valuetext", residual.toFixed(2));
    residualValue.textContent = residual.toFixed(2);
    byWords.textContent = say("flow.by");
    fillSelect(by, [["weights", say("flow.weights")], ["values", say("flow.values")]], settings.by());
    by.disabled = !settings.hasValues;
    by.title = settings.hasValues ? "" : say("flow.noValues");
    nearer.setAttribute("aria-label", say("flow.nearer"));
    farther.setAttribute("aria-label", say("flow.farther"));
    const words = [say("flow.read"), say("flow.colors"), say("flow.caution")];
    foot.replaceChildren(...words.map((text, i) => styled("span", i === 2 ? { color: "var(--view-warn)" } : {}, text)));
  };
  return { token, sampled, update };
}
