/** The licences of what a bundle holds of other people, found while it is built: a text beside it, and at its head. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "vite";

const FOLDER = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/; // the innermost package that a module belongs to
const LICENCE = /^(licen[cs]e|copying)(\.(md|txt))?$/i;
const HEAD = "regard.js holds code of the packages below, each under its own licence.";

/** What one package says of itself. */
interface Package {
  readonly name: string;
  readonly text: string;
}

function packageIn(folder: string): Package {
  const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((one) => LICENCE.test(one));
  if (file === undefined) throw new Error(`${name} ${version} has no licence text in ${folder}; it cannot be bundled`);
  return { name: `${name} ${version} (${license})`, text: readFileSync(join(folder, file), "utf8").trim() };
}

/** One text: packages under the same words stand together. */
export function notice(modules: readonly string[]): string {
  const folders = new Set(modules.flatMap((id) => FOLDER.exec(id.replaceAll("\\", "/"))?.[0] ?? []));
  const names = new Map<string, string[]>();
  for (const folder of [...folders].sort()) {
    const { name, text } = packageIn(folder);
    names.set(text, [...(names.get(text) ?? []), name]);
  }
  const parts = [...names].map(([text, those]) => `${those.join(", ")}\n\n${text}`);
  return [HEAD, ...parts].join(`\n\n${"-".repeat(72)}\n\n`);
}

/** Writes `name` beside the bundle, and the same text as a comment at the bundle's head. */
export const licences = (name: string): Plugin => ({
  name: "licences",
  enforce: "post", // after what takes comments out
  generateBundle(_, bundle) {
    for (const chunk of Object.values(bundle)) {
      if (chunk.type !== "chunk") continue;
      const held = Object.entries(chunk.modules).filter(([, module]) => module.renderedLength > 0);
      const text = notice(held.map(([id]) => id));
      chunk.code = `/*!\n${text.replaceAll("*/", "* /")}\n*/\n${chunk.code}`;
      this.emitFile({ type: "asset", fileName: name, source: `${text}\n` });
    }
  },
});
