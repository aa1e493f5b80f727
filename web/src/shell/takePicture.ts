/** A picture that somebody chose or dropped, for a model that sees. */
import { say } from "../language/language";
import { chosenModel, runModel } from "./running";
import type { Studio } from "./state";

const LARGEST = 8_000_000; // bytes of a picture

/** Reads a picture into the draft, then does what comes next; says so where it is too large or cannot be read. */
export function takePicture(studio: Studio, file: File, next: () => void = () => undefined): void {
  const tell = (text: string): void => void (studio.notice.value = { kind: "told", text });
  if (file.size > LARGEST) return tell(say("errors.large", { size: LARGEST / 1e6 }));
  const reader = new FileReader();
  reader.onload = () => {
    studio.write({ picture: String(reader.result) });
    next();
  };
  reader.onerror = () => tell(say("errors.upload", { why: file.name }));
  reader.readAsDataURL(file);
}

/** Runs a dropped picture through the chosen model, or the first that sees; false where the file is no picture. */
export function dropPicture(studio: Studio, file: File): boolean {
  if (!file.type.startsWith("image/") || studio.host.server === null) return false;
  const chosen = chosenModel(studio);
  const model = chosen?.reads === "picture" ? chosen : studio.models.value.find((one) => one.reads === "picture");
  if (model === undefined) {
    studio.notice.value = { kind: "told", text: say("errors.blind") };
    return true;
  }
  takePicture(studio, file, () => {
    studio.write({ model: model.name, text: file.name, typed: false }); // the run goes by its name
    studio.choice.pick({ view: "image", layer: 0, head: 0, query: null, key: null });
    void runModel(studio);
  });
  return true;
}
