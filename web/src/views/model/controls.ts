/** The order of the heads: by which measure, which way round, and how far measuring has come. */
import { errorText } from "../../language/errorText";
import { type ViewFrame, button, fillSelect, select } from "../parts/dom";
import { styled } from "../parts/element";
import type { Scene } from "../parts/view";
import type { MeasureStore } from "./measures";
import { measureName } from "./words";

/** Builds the controls; what is returned shows them as they are now. */
export function orderControls(
  { source, choice, say, signal }: Scene, { bar }: ViewFrame, measured: MeasureStore,
): () => void {
  const total = source.info.layers.length, batch = (): number => choice.picked.value.batch;
  const sortWords = styled("span"), order = select((sort) => choice.draw({ sort }), signal);
  const direction = button(() => choice.draw({ falling: !choice.drawn.value.falling }), signal);
  const progress = styled("span", { color: "var(--view-pale)", fontVariantNumeric: "tabular-nums" });
  progress.setAttribute("role", "status");
  const stop = button(() => {
    if (measured.running) measured.stop();
    else void measured.all(batch());
    update();
  }, signal);
  bar.append(
    styled("label", { display: "inline-flex", alignItems: "center", gap: "6px" }, sortWords, order),
    direction, progress, stop,
  );

  const update = (): void => {
    const { sort, falling } = choice.drawn.value, names = measured.names(batch()), count = measured.count(batch());
    const listed = sort === "" || names.includes(sort) ? names : [sort, ...names];
    sortWords.textContent = say("model.sort");
    fillSelect(order, [["", say("model.own")], ...listed.map((name) => [name, measureName(name, say)] as const)], sort);
    direction.textContent = say(falling ? "model.falling" : "model.rising");
    direction.title = say("shell.turn");
    direction.hidden = sort === "";
    const isUnfinished = sort !== "" && count < total;
    progress.textContent = measured.error !== null ? errorText(measured.error)
      : isUnfinished ? say("model.progress", { count, all: total }) : "";
    stop.textContent = say(measured.running ? "model.stop" : "model.continue");
    stop.hidden = !isUnfinished;
  };
  return update;
}
