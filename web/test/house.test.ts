// @vitest-environment node
/** Folders import back along one order and never in a circle; files and functions stay short. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { type SourceFile, folderCycles, folderOf, quantile, readTree } from "./house";

/** An import may point to an earlier folder of this list, never to a later one. */
const ORDER: readonly string[] = [
  "paint", "trace", "trace/local", "choose", "language/en", "language/zh", "language", "hosts",
  "views/parts", "views/map", "views/*", "views", "shell", "entry",
];
/** What views share stands in `parts`; of each other they know only the map, which can stand in another view. */
const SHARED_VIEWS: readonly string[] = ["views/parts", "views/map"];
/** The files that may load others by `import()` while they run. */
const DYNAMIC: readonly string[] = [];

const LONGEST_FILE = 400, MEDIAN_FILE = 110, LONGEST_FUNCTION = 120, P95_FUNCTION = 30;

const isView = (folder: string): boolean => folder.startsWith("views/");
/** Where a folder stands in the order; views that share nothing stand in one place. */
const rank = (folder: string): number =>
  ORDER.indexOf(isView(folder) && !SHARED_VIEWS.includes(folder) ? "views/*" : folder);

/** Each import that the order forbids, as a sentence. */
function wrongImports(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ file, edges }) => edges.flatMap(({ to, line, dynamic }) => {
    const [here, there] = [folderOf(file), folderOf(to)], at = `${file}:${line}:`;
    const unknown = [here, there].find((folder) => rank(folder) < 0);
    if (unknown !== undefined) return [`${at} ${unknown} is no folder of the order; add it to ORDER`];
    if (dynamic && !DYNAMIC.includes(file)) return [`${at} ${to} is imported while it runs; list the file in DYNAMIC`];
    if (rank(there) > rank(here)) return [`${at} ${here} imports ${to}, which comes later`];
    if (isView(here) && isView(there) && here !== there && !SHARED_VIEWS.includes(there))
      return [`${at} ${here} imports ${to}; move what both need to views/parts`];
    return [];
  }));
}

/** Each file and function that is too long, and the shares of them, as sentences. */
function tooLong(files: readonly SourceFile[]): string[] {
  const functions = files.flatMap((one) => one.functions);
  const median = quantile(files.map(({ lines }) => lines), 0.5);
  const p95 = quantile(functions.map(({ lines }) => lines), 0.95);
  return [
    ...files.filter(({ lines }) => lines > LONGEST_FILE).map(({ file, lines }) => `${file} has ${lines} lines`),
    ...functions.filter(({ lines }) => lines > LONGEST_FUNCTION)
      .map(({ file, line, name, lines }) => `${file}:${line}: ${name} has ${lines} lines`),
    ...(median > MEDIAN_FILE ? [`the median file has ${median} lines`] : []),
    ...(p95 > P95_FUNCTION ? [`one function in twenty has more than ${p95} lines`] : []),
  ];
}

const SOURCE = join(import.meta.dirname, "../src");

describe("web/src", () => {
  const files = readTree(SOURCE);

  it("imports back along the order of its folders", () => {
    expect(files.length).toBeGreaterThan(150);
    expect(wrongImports(files)).toEqual([]);
  });

  it("has no folders that import each other in a circle", () => {
    expect(files.flatMap(({ edges }) => edges).length).toBeGreaterThan(600);
    expect(folderCycles(files)).toEqual([]);
  });

  it("has short files and short functions", () => {
    expect(files.flatMap(({ functions }) => functions).length).toBeGreaterThan(1000);
    expect(tooLong(files)).toEqual([]);
  });
});

describe("a planted fault", () => {
  const roots: string[] = [];
  afterEach(() => roots.splice(0).forEach((root) => rmSync(root, { recursive: true })));

  const planted = (tree: Readonly<Record<string, string>>): SourceFile[] => {
    const root = mkdtempSync(join(tmpdir(), "house-"));
    roots.push(root);
    for (const [file, text] of Object.entries(tree)) {
      mkdirSync(dirname(join(root, file)), { recursive: true });
      writeFileSync(join(root, file), text);
    }
    return readTree(root);
  };
  const to = (path: string): string => `import { a } from "${path}";\n`;
  const EMPTY = "export const a = 1;\n";

  it.each([
    ["an import", to("../shell/b")],
    ["a type", 'import type { a } from "../shell/b";'],
    ["an export", 'export { a } from "../shell/b";'],
    ["a type in place", 'export const b = (a: import("../shell/b").A): void => undefined;'],
    ["something that is loaded for its effect", 'import "../shell/b";'],
  ])("is caught: %s that points forward", (_, text) => {
    const files = planted({ "views/a.ts": text, "shell/b.tsx": EMPTY });
    expect(wrongImports(files)).toEqual(["views/a.ts:1: views imports shell/b.tsx, which comes later"]);
  });

  it("is caught: an import while the program runs", () => {
    const files = planted({ "shell/a.ts": 'export const a = () => import("../views");', "views/index.ts": EMPTY });
    expect(wrongImports(files)).toEqual([expect.stringContaining("list the file in DYNAMIC")]);
  });

  it("is caught: a folder that nobody listed, and an import that leads nowhere", () => {
    expect(wrongImports(planted({ "misc/a.ts": to("../paint/b"), "paint/b.ts": EMPTY })))
      .toEqual([expect.stringContaining("misc is no folder of the order")]);
    expect(() => planted({ "paint/a.ts": to("./gone") })).toThrow("which is no file of the tree");
  });

  it("is caught: a view that reaches into another one", () => {
    const files = planted({ "views/image/a.ts": to("../numbers/b"), "views/numbers/b.ts": EMPTY });
    expect(wrongImports(files)).toEqual([expect.stringContaining("move what both need to views/parts")]);
    const map = planted({ "views/compare/a.ts": to("../map/b"), "views/map/b.ts": EMPTY });
    expect(wrongImports(map)).toEqual([]);
  });

  it("is caught: a circle of two folders, of three, and of a folder with its child", () => {
    expect(folderCycles(planted({ "a/x.ts": to("../b/y"), "b/y.ts": to("../a/z"), "a/z.ts": EMPTY })))
      .toEqual([["a", "b"]]);
    const three = { "a/x.ts": to("../b/x"), "b/x.ts": 'import type { a } from "../c/x";', "c/x.ts": to("../a/y") };
    expect(folderCycles(planted({ ...three, "a/y.ts": EMPTY, "d/x.ts": to("../a/y") }))).toEqual([["a", "b", "c"]]);
    expect(folderCycles(planted({ "a/x.ts": to("./b/y"), "a/b/y.ts": to("../z"), "a/z.ts": EMPTY })))
      .toEqual([["a", "a/b"]]);
  });

  it("is not seen where there is none", () => {
    const files = planted({ "views/map/a.ts": to("../../paint/b"), "paint/b.ts": to("./c"), "paint/c.ts": EMPTY });
    expect([folderCycles(files), wrongImports(files), tooLong(files)]).toEqual([[], [], []]);
  });

  const lines = (count: number): string => "  b();\n".repeat(count);

  it.each([
    ["a function", `export function a() {\n${lines(119)}}\n`],
    ["an arrow function", `export const a = () => {\n${lines(119)}};\n`],
    ["a method", `export class C {\n  a() {\n${lines(119)}}\n}\n`],
    ["a member", `export const o = {\n  a: () => {\n${lines(119)}},\n};\n`],
  ])("is caught: %s of 121 lines", (_, text) => {
    const short = Array.from({ length: 30 }, (_, i) => `export const f${i} = () => ${i};\n`).join("");
    const found = tooLong(planted({ "paint/a.ts": text, "paint/b.ts": short, "paint/c.ts": EMPTY }));
    expect(found).toEqual([expect.stringMatching(/^paint\/a\.ts:\d: a has 121 lines$/)]);
  });

  it("is caught: a long file, a long median, and many functions that are rather long", () => {
    expect(tooLong(planted({ "a.ts": EMPTY.repeat(401), "b.ts": EMPTY, "c.ts": EMPTY }))).toEqual(["a.ts has 401 lines"]);
    expect(tooLong(planted({ "a.ts": EMPTY.repeat(111), "b.ts": EMPTY.repeat(120), "c.ts": EMPTY })))
      .toEqual(["the median file has 111 lines"]);
    expect(tooLong(planted({ "a.ts": `export function a() {\n${lines(29)}}\n` })))
      .toEqual(["one function in twenty has more than 31 lines"]);
  });
});
