import { describe, expect, it } from "vitest";
import { linkTo } from "../../src/shell/foot";
import { toCsv, fileName, sizeOf } from "../../src/shell/export";

describe("taking along", () => {
  it("writes a table that reads back the same", () => {
    const table =
      [["token", "weight"], ['say "hi", twice', 0.25], ["line\nbreak", 1e-9], [" edge ", 0], ["猫", 1]] as const;
    const text = toCsv(table);
    expect(text.startsWith("\uFEFF")).toBe(true);
    expect(text).toContain('"say ""hi"", twice",0.25\r\n');
    const read =
      [...text.slice(1).matchAll(/(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r\n)/g)].map((found) =>
      found[1]?.replaceAll('""', '"') ?? found[2]!);
    expect(read).toEqual(table.flat().map(String));
  });

  it("names files so that every system takes them", () => {
    expect(fileName("猫 sat/../on: <mat>", "svg")).toBe("猫-sat-..-on-mat.svg");
    expect(fileName("../../etc/passwd", "csv")).not.toMatch(/[\\/]|^\./);
    expect(fileName("\u0000\u202E", "png")).toBe("regard.png");
  });

  it("reads the size of a picture", () => {
    const svg = '<svg xmlns="x" width="320.5" height="200" viewBox="0 0 1 1"><rect width="9" height="9"/></svg>';
    expect(sizeOf(svg)).toEqual({ width: 320.5, height: 200 });
    expect(sizeOf("<svg/>")).toEqual({ width: 800, height: 600 });
  });

  it("leaves a token out of a link", () => {
    expect(linkTo("http://127.0.0.1:8000/?token=secret#/old", "#/view=map")).toBe("http://127.0.0.1:8000/#/view=map");
  });
});
