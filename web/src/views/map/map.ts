/** One head as a map: rows are queries, columns are keys, and what stands out takes more. */
import type { View } from "../parts/view";
import { mapPanel } from "./panel";

export { type PanelOptions, mapPanel } from "./panel";

export const map: View = (scene) => mapPanel(scene);
