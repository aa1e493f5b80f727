import { describe, expect, it } from "vitest";
import { VIEWS } from "../../src/choose/choice";
import { type AddressPlace, readAddress, START, writeAddress } from "../../src/shell/address";
import { numbersFrom } from "../fake";

const draw = numbersFrom(11);
const below = (size: number): number => Math.min(size - 1, Math.floor(((draw() + 1) / 2) * size));
const maybe = <T>(value: T): T | null => (below(3) === 0 ? null : value);
const anything = Array.from("aé猫 &=#%/?+'\"<script>\u2028\u202E😀,");
const text = (): string => Array.from({ length: below(12) }, () => anything[below(anything.length)]!).join("");

const somewhere = (): AddressPlace => {
  const left = below(1000) / 8, top = below(1000) / 8;
  return {
    trace: text(), run: maybe(below(4)), other: text(),
    picked: {
      view: VIEWS[below(VIEWS.length)]!, layer: below(90), head: below(90), batch: below(5), query: maybe(below(1e5)),
        key: maybe(below(1e5)),
      heads: [...new Set(Array.from({ length: below(5) }, () => below(40)))],
      zoom: maybe({ left, top, right: left + 1 + below(50), bottom: top + 1 + below(50) }),
      beside: maybe({ layer: below(90), head: below(90) }),
    },
    drawn: {
      scale: (["linear", "log", "rank"] as const)[below(3)]!, pool: (["max", "mean"] as const)[below(2)]!,
        threshold: below(1000) / 1000,
      hide: below(2) === 1, sort: text(), falling: below(2) === 1,
      residual: below(91) / 100, by: (["weights", "values"] as const)[below(2)]!, near: 1 + below(504) / 8,
    },
  };
};

describe("the address", () => {
  it("gives every place back", () => {
    for (let i = 0; i < 500; i++) {
      const place = somewhere();
      expect(readAddress(writeAddress(place))).toEqual(place);
    }
  });

  it("is short and readable where all is as usual", () => {
    expect(writeAddress({ ...START, trace: "ab12" })).toBe("#/trace=ab12&view=map&layer=0&head=0");
    const zoom = { left: 0.5, top: 1, right: 8.1254, bottom: 9 };
    expect(writeAddress({ ...START,
      picked: { ...START.picked, layer: 2, head: 5, query: 7, key: 3, heads: [1, 2], zoom } }))
      .toBe("#/view=map&layer=2&head=5&heads=1,2&q=7&k=3&zoom=0.5,1,8.125,9");
  });

  it("takes any text for a place and never throws", () => {
    const hostile = [
      "", "#", "#/", "##", "%", "#/%E0%A4%A", "#/view=evil&layer=-1&head=1e99", "#/layer=NaN&q=Infinity&k=0x10",
        "#/zoom=1,2,3",
      "#/zoom=4,4,1,1", "#/zoom=NaN,0,1,1", "#/heads=1,,a,2,1", "#/min=2&scale=cubic&pool=sum", "#/stays=7&by=hand&near=1e9", "#/stays=1&near=0&words=1",
        "#/__proto__=1&constructor=2&view=toString",
      "#/trace=%3Cscript%3Ealert(1)%3C/script%3E", `#/trace=${"x".repeat(1e5)}`, "#/layer=99999999999999999999",
        "javascript:alert(1)", "#/=&&&==",
    ];
    for (const hash of [...hostile,
      ...Array.from({ length: 300 }, () => `#/${text()}=${text()}&layer=${text()}&zoom=${text()}`)]) {
      const place = readAddress(hash);
      expect(VIEWS).toContain(place.picked.view);
      expect(Number.isSafeInteger(place.picked.layer) && place.picked.layer >= 0).toBe(true);
      expect(place.drawn.threshold >= 0 && place.drawn.threshold <= 1).toBe(true);
      expect(place.drawn.residual >= 0 && place.drawn.residual <= 0.9).toBe(true);
      expect(place.drawn.near >= 1 && place.drawn.near <= 64).toBe(true);
      expect(place.trace.length).toBeLessThanOrEqual(200);
      expect(readAddress(writeAddress(place))).toEqual(place);
    }
    expect(readAddress("#/heads=1,,a,2,1").picked.heads).toEqual([1, 2]);
    expect(readAddress("#/%E0%A4%A=1&layer=3").picked.layer).toBe(3);
  });

  it("writes a lone surrogate without throwing", () => {
    expect(writeAddress({ ...START, trace: "a\uD800" })).toContain("trace=a%EF%BF%BD");
  });
});
