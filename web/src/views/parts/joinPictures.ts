/** Several pictures as one file. */
import { type Markup, node, svgDocument } from "../../paint/svg";

/** Pictures beside each other in one file. */
export function joinPictures(files: readonly string[]): string {
  const parts: Markup[] = [];
  let x = 0, height = 0;
  for (const file of files) {
    const size = /width="([\d.]+)" height="([\d.]+)"/.exec(file);
    parts.push(node("g", { transform: `translate(${x} 0)` }, { markup: file }));
    x += Number(size?.[1] ?? 0) + 12;
    height = Math.max(height, Number(size?.[2] ?? 0));
  }
  return svgDocument(Math.max(1, x - 12), Math.max(1, height), parts);
}
