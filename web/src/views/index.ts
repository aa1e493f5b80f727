/** All views by name. */
import type { ViewName } from "../choose/choice";
import { compare } from "./compare";
import { edit } from "./edit";
import { flow } from "./flow";
import { heads } from "./heads";
import { image } from "./image";
import { map } from "./map";
import { model } from "./model";
import { numbers } from "./numbers";
import { training } from "./training";
import type { View } from "./view";

export const VIEW: Readonly<Record<ViewName, View>> = { map, heads, model, numbers, flow, edit, compare, image, training };
