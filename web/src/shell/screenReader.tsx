/** Says the pinned row as a sentence, for readers of screens: "猫 looks at cat 91 %, The 5 %". */
import { tokensOf } from "../trace/source";
import { percent } from "../paint/digits";
import { strongest } from "../trace/rowFacts";
import { tokenName } from "../views/parts/names";
import { say } from "../language/language";
import { useRow } from "./focusedCell";
import { shownOrOpenSource } from "./shownSource";
import type { Studio } from "./state";

export function ScreenReaderStatus({ studio }: { studio: Studio }) {
  return studio.source.value === null ? null : <Sentence studio={studio} />;
}

function Sentence({ studio }: { studio: Studio }) {
  const source = shownOrOpenSource(studio);
  const { layer, head, batch, query, key } = studio.choice.picked.value;
  const row = useRow({ source, layer, head, batch, query, key }, 250);
  const keys = tokensOf(source.info, layer, batch, "keys"), queries = tokensOf(source.info, layer, batch, "queries");
  const name = query === null ? "" : tokenName(queries, query);
  const list = row === null ? [] : strongest(row, 3).map((one) => `${tokenName(keys, one.key)} ${percent(one.weight)}`);
  const words = query === null ? "" : row === null ? "" : list.length === 0 ? say("shell.blind", { query: name })
    : say("shell.looks", { query: name, list: list.join(say("comma")) });
  return <p class="unseen" role="status" aria-live="polite">{words}</p>;
}
