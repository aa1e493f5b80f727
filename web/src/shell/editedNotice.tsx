/** That what is looked at comes from an edited model, and which edits: above every view, and below every picture. */
import { label, node, svgDocument } from "../paint/svg";
import { shortenText } from "../paint/text";
import type { TraceInfo } from "../trace/source";
import { VIEW } from "../views";
import { currentView } from "./availableViews";
import { say } from "../language/language";
import { shownSource } from "./shownSource";
import type { Studio } from "./state";
import { sizeOf } from "./export";

const LISTED = 3, LONGEST = 80; // edits in one line, and characters of each

/** "edited: mute(heads 0), block(…) and 2 more"; nothing where the model ran as it is. */
export function editedWords(info: TraceInfo): string {
  const { edits } = info, rest = edits.length - LISTED;
  if (edits.length === 0) return "";
  const list = edits.slice(0, LISTED).map((one) => shortenText(one, LONGEST)).join(say("comma"));
  return rest > 0 ? say("shell.edited.more", { list, count: rest }) : say("shell.edited", { list });
}

/** What is seen now; in a comparison both, called A and B as there. */
function linesOf(studio: Studio): readonly string[] {
  const seen = shownSource(studio), other = VIEW[currentView(studio)].pairs ? studio.other.value : null;
  if (seen === null) return [];
  if (other === null) return [editedWords(seen.info)].filter(Boolean);
  return [seen, other].flatMap(({ info }, i) => {
    const words = editedWords(info);
    return words === "" ? [] : [`${"AB"[i]}: ${words}`];
  });
}

export function EditedNotice({ studio }: { studio: Studio }) {
  const lines = linesOf(studio);
  if (lines.length === 0) return null;
  return <div class="edited" role="note">{lines.map((line) => <p key={line} title={line}><bdi>{line}</bdi></p>)}</div>;
}

/** A picture that says below itself that its model was edited. */
export function withEditCaption(studio: Studio, svg: string): string {
  const { width, height } = sizeOf(svg), { ink, ground } = studio.look.theme.value;
  const most = Math.max(20, Math.floor(width / 7)); // characters that fit beside each other
  const lines = linesOf(studio).flatMap((line) => line.match(new RegExp(`.{1,${most}}(?= |$)|.{${most}}`, "gu")) ?? []);
  if (lines.length === 0) return svg;
  const words = lines.map((line, i) => label(8, height + 16 * (i + 1), line.trim(), { fill: ink }));
  const tall = height + 16 * lines.length + 8;
  return svgDocument(width, tall, [node("rect", { width, height: tall, fill: ground }), { markup: svg }, ...words]);
}
