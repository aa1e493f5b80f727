/** Attention over a picture: the patches that the chosen query looks at, laid over what the model saw. */
import { fourDigits } from "../../paint/digits";
import { messageFile } from "../parts/shape";
import { adoptStyle } from "../parts/sheet";
import type { Scene, ViewExports, View } from "../parts/view";
import { ImageView } from "./imageView";
import { followChoice, listen, loadPicture } from "./input";
import { pictureFile } from "./paint";
import { IMAGE } from "./style";

/** The picture with the weights of one query. */
export const image: View = (scene: Scene): ViewExports => {
  const { el, say, signal } = scene;
  adoptStyle(el, IMAGE, signal);
  const view = new ImageView(scene);
  followChoice(view);
  view.surface.onResize(view.draw);
  listen(view);
  loadPicture(view);
  const probe = probeOf(view);
  Object.assign(el, { regard: probe });
  return {
    probe,
    svg: async () => {
      if (!view.reading) return messageFile(view.absence(), scene.theme());
      const ends = ["0", fourDigits(view.weighed?.top ?? 0)] as const;
      return pictureFile({ ...view.look(), over: -1 }, view.form(), view.chosenName(), ends);
    },
    table: async () => [
      [say("image.patches"), say("weight")],
      ...Array.from(view.weighed?.weights ?? [], (weight, patch) => [patch, weight]),
    ],
  };
};

const probeOf = (view: ImageView) => ({
  weight: (patch: number): number => view.weighed?.weights[patch] ?? NaN,
  query: (): number => view.place(),
  at: (patch: number): readonly [number, number] | null => {
    const frame = view.frames[view.frames.length - 1], grid = view.reading?.grid;
    if (!frame || !grid) return null;
    return [
      frame.x + ((patch % grid.columns) + 0.5) * (frame.width / grid.columns),
      frame.y + (Math.floor(patch / grid.columns) + 0.5) * (frame.height / grid.rows),
    ];
  },
});
