/** Which views make sense for what is looked at. */
import { VIEWS, type ViewName } from "../choose/choice";
import { VIEW } from "../views";
import type { Studio } from "./state";

/** The views to offer, in their order. */
export function availableViews(studio: Studio): readonly ViewName[] {
  const info = studio.source.value?.info, isServed = studio.host.server !== null;
  return VIEWS.filter((view) => VIEW[view].isOffered?.(info, isServed) ?? true);
}

/** The key that goes to a view: its place from 1 to 9; "" for those after. */
export const keyOf = (view: ViewName): string => (VIEWS.indexOf(view) < 9 ? String(VIEWS.indexOf(view) + 1) : "");

/** The view to show now: the picked one, else the map. */
export const currentView = (studio: Studio): ViewName => {
  const all = availableViews(studio), wanted = studio.choice.picked.value.view;
  return all.includes(wanted) ? wanted : (all[0] ?? "map");
};
