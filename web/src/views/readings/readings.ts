/** One text as two models read it: both maps with one selection, what each expects for a word, and all numbers. */
import { errorText } from "../../language/errorText";
import type { Source } from "../../trace/source";
import { h } from "../parts/element";
import { joinPictures } from "../parts/joinPictures";
import { setColours } from "../parts/plainStyle";
import { messageFile } from "../parts/shape";
import { adoptStyle } from "../parts/sheet";
import type { Scene, View, ViewExports } from "../parts/view";
import { type Gap, guessAt } from "./gap";
import { Guesses } from "./guesses";
import { type HeadNumbers, headNumbers } from "./headNumbers";
import { type Column, numbersLines, numbersTable } from "./numbersTable";
import { SIDES, type Side, type SideName, Sides } from "./sides";
import { READINGS } from "./style";

/** The open trace on the left, the one that it is compared with on the right. */
export const readings: View = (scene: Scene): ViewExports => {
  const { el, other, signal } = scene;
  adoptStyle(el, READINGS, signal);
  const root = h("div", { class: "rg rg-readings" });
  el.replaceChildren(root);
  return other ? new TwoReadings(scene, other, root).shown() : nothingBeside(scene, root);
};

function nothingBeside({ el, choice, say, signal, theme }: Scene, root: HTMLElement): ViewExports {
  const probe = { gap: (): null => null, settled: async () => undefined };
  Object.assign(el, { regard: probe });
  choice.watch(() => {
    setColours(root, theme());
    root.replaceChildren(h("p", { class: "message", role: "status" }, say("readings.none")));
  }, signal);
  return { probe, svg: async () => messageFile(say("readings.none"), theme()) };
}

/** Which head a side shows; reads its choice, so that whoever watches follows it. */
const headName = ({ choice: { picked } }: Side): string => `${picked.value.layer} ${picked.value.head}`;

class TwoReadings {
  private readonly sides: Sides;
  private readonly guesses: Guesses;
  private readonly table = h("section", { class: "numbers" });
  private numbers: readonly (HeadNumbers | null)[] = [null, null]; // of the heads in hand
  private numbersOf = "";
  private counting: Promise<void> = Promise.resolve();
  private request: AbortController | null = null;

  constructor(private readonly scene: Scene, other: Source, root: HTMLElement) {
    const { choice, say, signal, theme } = scene;
    this.sides = new Sides(scene, other);
    this.guesses = new Guesses(scene, this.sides);
    root.append(h("p", { class: "read" }, ...this.hints()), this.sides.element, this.guesses.element, this.table);
    signal.addEventListener("abort", () => this.request?.abort(), { once: true });
    choice.watch(() => {
      setColours(root, theme());
      say("readings.read");
      const name = [choice.drawn.value.pool, ...this.sides.both.map(headName)].join();
      if (name === this.numbersOf) return;
      this.numbersOf = name;
      this.counting = this.count();
    }, signal);
  }

  /** How to read the view, and how the selection follows where tokens differ. */
  private hints(): readonly HTMLElement[] {
    const { say } = this.scene, { isSame } = this.sides.alignment();
    return [say("readings.read"), ...(isSame ? [] : [say("readings.aligned")])].map((words) => h("span", {}, words));
  }

  /** Counts the heads in hand anew, and gives both maps one scale. */
  private async count(): Promise<void> {
    this.request?.abort();
    const { signal } = (this.request = new AbortController());
    this.numbers = [null, null];
    this.showNumbers();
    try {
      const found = this.sides.both.map(({ source, choice }) => {
        const { layer, batch, head } = choice.picked.peek();
        return headNumbers(source, { layer, batch, head }, signal);
      });
      const [numbers] = await Promise.all([Promise.all(found), this.sides.findTop(signal)]);
      if (signal.aborted) return;
      this.numbers = numbers;
      this.showNumbers();
    } catch (error) {
      const words = this.scene.say("readings.failed", { why: errorText(error) });
      if (!signal.aborted) this.table.replaceChildren(h("p", { class: "message", role: "alert" }, words));
    }
  }

  private columns(): readonly Column[] {
    const { both } = this.sides;
    return both.map(({ title, source }, i) => ({ title, reading: source.info.reading, head: this.numbers[i] ?? null }));
  }

  private showNumbers(): void {
    const { say } = this.scene;
    this.sides.showNumbers(this.numbers);
    const note = h("p", { class: "pale" }, say("readings.note"));
    this.table.replaceChildren(h("h3", {}, say("readings.numbers")), numbersTable(this.columns(), say), note);
  }

  shown(): ViewExports {
    const { sides, guesses } = this, at = (name: SideName): number => SIDES.indexOf(name);
    const probe = {
      weight: (side: SideName, query: number, key: number): number | null => sides.weight(side, query, key),
      picked: (side: SideName) => sides.both[at(side)]!.choice.picked.peek(),
      hover: (side: SideName) => sides.both[at(side)]!.choice.hover.peek(),
      numbers: (side: SideName): HeadNumbers | null => this.numbers[at(side)] ?? null,
      gap: (): Gap | null => guesses.gap(),
      guess: (side: SideName) => guessAt(sides.both[at(side)]!.source.info, guesses.gap()?.[side] ?? null),
      top: (): number | null => sides.top.peek(),
      settled: async (): Promise<void> => {
        await this.counting;
        await sides.settled();
      },
    };
    Object.assign(this.scene.el, { regard: probe });
    const table = async (): Promise<(string | number)[][]> => {
      await this.counting;
      return numbersLines(this.columns(), this.scene.say);
    };
    return { probe, svg: async () => joinPictures(await sides.svgs()), table };
  }
}
