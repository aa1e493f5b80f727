/** All views by name. */
import type { ViewName } from "../choose/choice";
import { compare } from "./compare/compare";
import { edit } from "./edit/edit";
import { flow } from "./flow/flow";
import { heads } from "./heads/heads";
import { image } from "./image/image";
import { map } from "./map/map";
import { model } from "./model/model";
import { numbers } from "./numbers/numbers";
import { training } from "./training/training";
import type { View } from "./parts/view";

export const VIEW: Readonly<Record<ViewName, View>> = { map, heads, model, numbers, flow, edit, compare, image, training };
