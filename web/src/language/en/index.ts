/** English. One file per area; the same keys stand in every language, in the same order. */
import { codes } from "./codes";
import { common } from "./common";
import { compare } from "./compare";
import { edit } from "./edit";
import { errors } from "./errors";
import { flow } from "./flow";
import { heads } from "./heads";
import { help } from "./help";
import { image } from "./image";
import { map } from "./map";
import { model } from "./model";
import { numbers } from "./numbers";
import { page } from "./page";
import { readings } from "./readings";
import { shell } from "./shell";
import { training } from "./training";

export const en = {
  ...common, ...shell, ...map, ...heads, ...model, ...numbers, ...flow, ...edit, ...compare, ...image,
  ...training, ...readings, ...help, ...errors, ...codes, ...page,
};
