/** One head as a map: rows are queries, columns are keys, and what stands out takes more. */
import type { View } from "./view";
import { mapPanel } from "./map/panel";

export { type PanelOptions, mapPanel } from "./map/panel";

export const map: View = (scene) => mapPanel(scene);
