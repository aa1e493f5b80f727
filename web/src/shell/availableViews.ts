/** Which views make sense for what is looked at. */
import { VIEWS, type ViewName } from "../choose/choice";
import { isWindowed } from "../views/image/patches";
import type { Studio } from "./state";

/** The views to offer, in their order. Pictures need patches, training needs a server that keeps it. */
export function availableViews(studio: Studio): readonly ViewName[] {
  const info = studio.source.value?.info;
  const patches = info !== undefined && (info.picture !== null || info.tokens.some((tokens) => tokens.grid !== null)
    || info.layers.some((_, layer) => isWindowed(info, layer))); // which says why it is not drawn
  return VIEWS.filter((view) => (view !== "image" || patches) && (view !== "training" || studio.host.server !== null));
}

/** The view to show now: the picked one, else the map. */
export const currentView = (studio: Studio): ViewName => {
  const all = availableViews(studio), wanted = studio.choice.picked.value.view;
  return all.includes(wanted) ? wanted : (all[0] ?? "map");
};
