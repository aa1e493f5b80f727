/** The source tree as data: which file imports which, and how long files and functions are. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import ts from "typescript";

export interface Edge {
  readonly from: string; // files, relative to the tree
  readonly to: string;
  readonly line: number;
  readonly dynamic: boolean; // `import("…")` inside a function
}

export interface FunctionLength {
  readonly name: string;
  readonly file: string;
  readonly line: number;
  readonly lines: number;
}

export interface SourceFile {
  readonly file: string;
  readonly lines: number;
  readonly edges: readonly Edge[];
  readonly functions: readonly FunctionLength[];
}

const SUFFIXES = ["", ".ts", ".tsx", "/index.ts", "/index.tsx"];
const slashed = (path: string): string => path.replaceAll("\\", "/");

/** Every TypeScript file below a folder, parsed. */
export function readTree(root: string): SourceFile[] {
  const files = readdirSync(root, { recursive: true, encoding: "utf8" })
    .map(slashed)
    .filter((file) => /\.tsx?$/.test(file))
    .sort();
  const known = new Set(files);
  return files.map((file) => readSource(root, file, known));
}

function readSource(root: string, file: string, known: ReadonlySet<string>): SourceFile {
  const text = readFileSync(join(root, file), "utf8");
  const tree = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const lineAt = (position: number): number => tree.getLineAndCharacterOfPosition(position).line + 1;
  const edges: Edge[] = [], functions: FunctionLength[] = [];
  const visit = (node: ts.Node): void => {
    const imported = importOf(node);
    const to = imported && resolveImport(file, imported.path, known);
    if (to) edges.push({ from: file, to, line: lineAt(node.getStart()), dynamic: imported.dynamic });
    const name = functionName(node);
    if (name !== null) {
      const line = lineAt(node.getStart());
      functions.push({ name, file, line, lines: lineAt(node.end) - line + 1 });
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return { file, lines: text.replace(/\n$/, "").split("\n").length, edges, functions };
}

/** What a node imports: `import … from`, `export … from`, `import type`, `import("…")` as a call or as a type. */
function importOf(node: ts.Node): { readonly path: string; readonly dynamic: boolean } | null {
  const specifier =
    ts.isImportDeclaration(node) || ts.isExportDeclaration(node) ? node.moduleSpecifier
      : ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument) ? node.argument.literal
        : isDynamicImport(node) ? node.arguments[0]
          : undefined;
  return specifier !== undefined && ts.isStringLiteralLike(specifier)
    ? { path: specifier.text, dynamic: isDynamicImport(node) }
    : null;
}

const isDynamicImport = (node: ts.Node): node is ts.CallExpression =>
  ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword;

/** The file of the tree that an import means; null for packages. A path that leads to no file is an error. */
function resolveImport(file: string, path: string, known: ReadonlySet<string>): string | null {
  if (!path.startsWith(".") || /\.(css|svg|json)(\?.*)?$/.test(path)) return null;
  const base = slashed(join(dirname(file), path));
  const target = SUFFIXES.map((suffix) => base + suffix).find((candidate) => known.has(candidate));
  if (target === undefined) throw new Error(`${file} imports ${path}, which is no file of the tree`);
  return target;
}

/** The name of a function with a name of its own; null for other nodes and for callbacks. */
function functionName(node: ts.Node): string | null {
  if (ts.isConstructorDeclaration(node)) return "constructor";
  if (ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node) || ts.isAccessor(node))
    return node.body ? (node.name?.getText() ?? "default") : null;
  if (!ts.isArrowFunction(node) && !ts.isFunctionExpression(node)) return null;
  const { parent } = node;
  const isNamed = ts.isVariableDeclaration(parent) || ts.isPropertyAssignment(parent) || ts.isPropertyDeclaration(parent);
  return isNamed ? parent.name.getText() : null;
}

export const folderOf = (file: string): string => slashed(relative(".", dirname(file))) || ".";

/** The value that this share of the numbers does not exceed. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
}

/** Groups of folders that import each other in a circle, each sorted; every import counts, types too. */
export function folderCycles(files: readonly SourceFile[]): string[][] {
  const reached = new Map<string, Set<string>>();
  const next = new Map<string, Set<string>>();
  for (const { edges } of files)
    for (const { from, to } of edges) {
      const [here, there] = [folderOf(from), folderOf(to)];
      if (here !== there) next.set(here, (next.get(here) ?? new Set()).add(there));
    }
  const reach = (folder: string): Set<string> => {
    const seen = new Set<string>(), open = [...(next.get(folder) ?? [])];
    for (let one = open.pop(); one !== undefined; one = open.pop())
      if (!seen.has(one)) {
        seen.add(one);
        open.push(...(next.get(one) ?? []));
      }
    return seen;
  };
  for (const folder of next.keys()) reached.set(folder, reach(folder));
  const groups = new Map<string, string[]>();
  for (const [folder, there] of reached) {
    if (!there.has(folder)) continue;
    const group = [...there].filter((one) => reached.get(one)?.has(folder)).sort();
    groups.set(group.join(), group);
  }
  return [...groups.values()];
}
