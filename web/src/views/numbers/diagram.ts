/** The whole computation of a cell as one picture: above what comes in, below what is made of it, left to right. */
import type { Theme } from "../../paint/theme";
import { svgDocument } from "../../paint/svg";
import type { Say } from "../../language/language";
import { fourDigits } from "../../paint/digits";
import { type Shape, asElement, asMarkup, shape, textShape } from "../parts/shape";
import { isRoot } from "./steps";
import { type StepName, type Work, sum } from "./work";

interface Box {
  readonly step: StepName;
  readonly name: string;
  readonly lines: readonly string[];
}
/** One station of the road, and what flows into it from above. */
export interface Station extends Box {
  readonly feeds: readonly Box[];
}

const LEAST = 96, HIGH = 46, GAP = 30, DROP = 20, BETWEEN = 8, MARGIN = 18, LEADING = 16;

const few = (values: ArrayLike<number>): string => {
  const first = Array.from({ length: Math.min(2, values.length) }, (_, i) => fourDigits(values[i]!));
  return values.length > 2 ? `${first.join(", ")}, …` : first.join(", ");
};

/** About how wide a box must be for its words; Chinese letters count double. */
const wideOf = ({ name, lines }: Box): number =>
  Math.max(
    LEAST, ...[name, ...lines].map((text) => 18 + sum([...text].map((letter) => (letter > "\u2e80" ? 13 : 7.9))))
  );

/** The stations that this cell passes; steps that the model does not have are left out. */
export function stationsOf(work: Work, say: Say): Station[] {
  const { numbers } = work;
  const name = (step: StepName): string => say(`numbers.name.${step}`);
  const box = (step: StepName, called: string, ...lines: string[]): Box => ({ step, name: called, lines });
  const out: Station[] = [];
  for (const step of work.steps) {
    const station = (
      lines: readonly string[], ...feeds: Box[]
    ): unknown => out.push({ step, name: name(step), lines, feeds });
    if (step === "dot" || step === "score") {
      const value = step === "dot" ? numbers.dot![work.r * numbers.columns.length + work.c]! : work.score!;
      const feeds = [work.q && box("q", "q", few(work.q)), work.k && box("k", "k", few(work.k))];
      station([work.met ? fourDigits(value) : "–"], ...feeds.filter((one) => one !== null));
    } else if (step === "scale") {
      const meaning = isRoot(work) ? `1 / √${numbers.d}` : "scale";
      station([fourDigits(work.scaled!)], box("scale", meaning, fourDigits(numbers.scale)));
    } else if (step === "softcap")
      station([fourDigits(work.capped!)], box("softcap", "cap", fourDigits(numbers.softcap!)));
    else if (step === "bias")
      station([fourDigits(work.capped! + work.bias!)], box("bias", "b", fourDigits(work.bias!)));
    else if (step === "mask") station([work.allowed ? fourDigits(work.score!) : "-∞"]);
    else if (step === "softmax" && !work.blind) {
      const feeds = [
        box("softmax", say("numbers.largest"), fourDigits(numbers.highest![work.r]!)),
        box("softmax", say("numbers.total"), fourDigits(numbers.total![work.r]!)),
      ];
      if (numbers.sink) feeds.push(box("softmax", say("numbers.sink"), fourDigits(numbers.sink[work.r]!)));
      station([fourDigits(work.weight)], ...feeds);
    } else if (step === "softmax" || step === "weight") station([fourDigits(work.weight)]);
    else if (step === "value" && work.weighted) station([few(work.weighted)], box("value", "v", few(work.v!)));
    else if (step === "mix") {
      station([few(work.mix!)], box("mix", say("numbers.rest"), few(work.mix!.map((x, i) => x - work.weighted![i]!))));
    }
  }
  return out;
}

/** Where everything stands when the picture may be this wide; as many lines as it takes. */
export function diagramOf(
  stations: readonly Station[], width: number, theme: Theme,
): { width: number; height: number; shapes: Shape[] } {
  const shapes: Shape[] = [];
  let x = MARGIN, top = 4, end = 0, before: { x: number; y: number } | null = null;
  for (const station of stations) {
    const own = wideOf(station), feeds = station.feeds.map(wideOf);
    const above = sum(feeds) + BETWEEN * Math.max(0, feeds.length - 1), size = Math.max(own, above);
    const turn: boolean = before !== null && x + size > width - MARGIN;
    if (turn) {
      x = MARGIN;
      top += 2 * HIGH + DROP + 34;
    }
    const main = { x: x + (size - own) / 2, y: top + HIGH + DROP };
    const middle = main.y + HIGH / 2;
    if (before !== null) {
      const way: string = turn
        ? `M${before.x} ${before.y} h10 V${top - 17} H${MARGIN - 12} V${middle} H${main.x - 2}`
        : `M${before.x} ${before.y} H${main.x - 2}`;
      shapes.push(arrow(way, theme));
    }
    let left = x + (size - above) / 2;
    station.feeds.forEach((feed, i) => {
      const centre = left + feeds[i]! / 2, target = main.x + (own * (i + 1)) / (feeds.length + 1);
      shapes.push(
        arrow(
          `M${centre} ${top + HIGH} C${centre} ${top + HIGH + DROP} ${target} ${top + HIGH} ${target} ${main.y - 2}`,
          theme,
        )
      );
      shapes.push(drawStation(feed, left, top, feeds[i]!, theme, true));
      left += feeds[i]! + BETWEEN;
    });
    shapes.push(drawStation(station, main.x, main.y, own, theme, false));
    before = { x: main.x + own, y: middle };
    x += size + GAP;
    end = Math.max(end, x - GAP + MARGIN);
  }
  return { width: end, height: top + 2 * HIGH + DROP + 4, shapes };
}

const arrow = (d: string, theme: Theme): Shape =>
  shape("path", { d, fill: "none", stroke: theme.pale, "stroke-width": 1.3, "marker-end": "url(#numbers-arrow)" });

function drawStation(box: Box, x: number, y: number, width: number, theme: Theme, feed: boolean): Shape {
  const fill = box.step === "q" ? theme.query : box.step === "k" || box.step === "value" ? theme.key : theme.ink;
  const middle = x + width / 2;
  const frame = {
    x, y, width, height: HIGH, rx: 6, fill: feed ? theme.ground : theme.raised,
    stroke: theme.line, "stroke-width": 1.2, ...(feed ? { "stroke-dasharray": "4 3" } : {}),
  };
  const strong = { "text-anchor": "middle", fill: theme.ink, "font-size": 13, "font-weight": 600 };
  const texts = box.lines.map((line, i) =>
    textShape(middle, y + 20 + LEADING * (i + 1), line, strong));
  return {
    ...shape(
      "g", {}, shape("rect", frame),
      shape(
        "text", { x: middle, y: y + 18, "text-anchor": "middle", fill: feed ? fill : theme.pale, "font-size": 12 },
        box.name,
      ),
      ...texts,
    ),
    mark: box.step,
  };
}

const marker = (theme: Theme): Shape =>
  shape(
    "defs", {},
    shape(
      "marker", {
        id: "numbers-arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto",
      },
      shape("path", { d: "M0 0.5 L8 4 L0 7.5 Z", fill: theme.pale }),
    ),
  );

/** The picture as a file of its own. */
export function diagramFile(stations: readonly Station[], title: string, theme: Theme): string {
  const picture = diagramOf(stations, 1200, theme);
  const head = shape("text", { x: MARGIN, y: 20, fill: theme.ink, "font-size": 14 }, title);
  const ground = shape(
    "rect", { width: Math.max(picture.width, 640), height: picture.height + 40, fill: theme.ground },
  );
  const body = shape("g", { transform: "translate(0 34)" }, ...picture.shapes);
  return svgDocument(
    Math.max(picture.width, 640), picture.height + 40, [ground, marker(theme), head, body].map(asMarkup),
  );
}

/** A click or Enter on a station goes to its step. */
function makeClickable(element: SVGElement, step: string, go: (step: StepName) => void): void {
  element.setAttribute("class", "station");
  element.setAttribute("data-step", step);
  element.setAttribute("tabindex", "0");
  element.setAttribute("role", "button");
  element.addEventListener("click", () => go(step as StepName));
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    event.stopPropagation();
    go(step as StepName);
  });
}

/** The picture on the screen; a click on a station goes to its step. */
export function diagramElement(
  stations: readonly Station[], width: number, theme: Theme, label: string, go: (step: StepName) => void,
): SVGElement {
  const picture = diagramOf(stations, width, theme);
  const whole = shape(
    "svg",
    {
      width: picture.width, height: picture.height, viewBox: `0 0 ${picture.width} ${picture.height}`, role: "group",
      "aria-label": label,
    },
    marker(theme), ...picture.shapes,
  );
  return asElement(whole, (element, step) => makeClickable(element, step, go));
}
