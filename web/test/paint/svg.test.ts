import { describe, expect, it } from "vitest";
import { HATCHES, hatch, hatchFill, hatchSvg } from "../../src/paint/hatch";
import { nullContext } from "../../src/paint/nullContext";
import { escapeXml, label, node, svgDocument } from "../../src/paint/svg";
import { DARK, LIGHT } from "../../src/paint/theme";

const parse = (text: string): Document => new DOMParser().parseFromString(text, "image/svg+xml");

describe("svg", () => {
  it("escapes every string and only lets nodes be markup", () => {
    const hostile = `</text><script>alert("1")</script>&'\u0000\ud800`;
    const file = svgDocument(
      100, 50.5, [label(1, 2, hostile), node("g", { id: `"><x` }, node("rect", { width: 1 / 3, fill: null }))],
    );
    expect(file).not.toContain("<script");
    expect(file).not.toContain("\u0000");
    const page = parse(file);
    expect(page.querySelector("text")!.textContent).toBe(`</text><script>alert("1")</script>&'\ufffd\ufffd`);
    expect(page.querySelector("rect")!.getAttribute("width")).toBe("0.333");
    expect(page.querySelector("rect")!.hasAttribute("fill")).toBe(false);
    expect(escapeXml("\u2028猫👩‍👩‍👧")).toBe("\u2028猫👩‍👩‍👧");
  });
  it("names no address but the namespace of SVG", () => {
    expect(svgDocument(1, 1, []).match(/https?:[^"]*/g)).toEqual(["http://www.w3.org/2000/svg"]);
  });
});

describe("hatches", () => {
  it("differ from each other, in SVG and in name", () => {
    const made = HATCHES.map((kind) => hatchSvg(kind, LIGHT).markup.replace(`hatch-${kind}`, ""));
    expect(new Set(made).size).toBe(3);
    expect(hatchSvg("padding", DARK).markup).toContain(`id="hatch-padding"`);
    expect(hatchFill("padding")).toBe("url(#hatch-padding)");
  });
  it("are patterns even where nothing can be painted", () => {
    const context = nullContext(document.createElement("canvas"));
    for (const kind of HATCHES) expect(hatch(context, LIGHT, kind)).toBeDefined();
    context.fillStyle = "red";
    expect(context.fillStyle).toBe("red");
    expect(context.measureText("four").width).toBe(28);
  });
});
