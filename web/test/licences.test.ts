// @vitest-environment node
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { notice } from "../licences";

const home = mkdtempSync(join(tmpdir(), "licences-"));
afterAll(() => rmSync(home, { recursive: true }));

function made(name: string, version: string, files: Record<string, string>): string {
  const folder = join(home, "node_modules", name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name, version, license: "MIT" }));
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
  return join(folder, "dist/one.js");
}

describe("the licences of a bundle", () => {
  it("name every package that has a module in it, once, with its own words", () => {
    const modules = [
      made("one", "1.2.3", { "LICENSE": "words of one\n" }), made("@two/a", "2.0.0", { "LICENSE.md": "words of two" }),
      made("@two/b", "2.1.0", { "LICENCE.txt": "words of two" }), "/here/src/own.ts", "\0virtual",
    ];
    const text = notice([...modules, modules[0]!.replace("one.js", "other.js")]);
    expect(text.match(/words of one/g)).toHaveLength(1);
    expect(text.match(/words of two/g)).toHaveLength(1);
    expect(text).toContain("@two/a 2.0.0 (MIT), @two/b 2.1.0 (MIT)");
    expect(text).not.toContain("own.ts");
  });
  it("are wanted of everyone: a package without words cannot be bundled", () => {
    expect(() => notice([made("mute", "3.0.0", {})])).toThrow("mute 3.0.0 has no licence text");
  });
});
