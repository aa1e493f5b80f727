/** Whose numbers stand on the stage. */
import type { Source } from "../trace/source";
import { currentView } from "./availableViews";
import type { Studio } from "./state";

/** The open trace, or the one that a view has opened by itself; null while that is on its way, or is not there. */
export const shownSource = (studio: Studio): Source | null =>
  currentView(studio) === "training" ? (studio.exports.value.of?.value ?? null) : studio.source.value;

/** The same, and the open trace where nothing is seen yet: what there is to choose from. */
export const shownOrOpenSource = (studio: Studio): Source => shownSource(studio) ?? studio.source.value!;
