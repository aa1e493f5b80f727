import { describe, expect, it } from "vitest";
import { say } from "../../src/language/language";
import { LIGHT } from "../../src/paint/theme";
import { openLocalSource } from "../../src/trace/local/source";
import type { Source } from "../../src/trace/source";
import { bodyOf } from "../../src/views/numbers/steps";
import { stationsOf } from "../../src/views/numbers/diagram";
import type { Page } from "../../src/views/numbers/tables";
import { workOf } from "../../src/views/numbers/work";
import { bytesOf } from "../trace/local/read";

const page: Page = { say, theme: LIGHT, open: false, queries: String, keys: String };

/** One cell of every layer: the last query and a key in the middle; every layer another head. */
const cellsOf = (source: Source) =>
  source.info.layers.map(({ shape: [batches, heads, queries, keys] }, layer) => ({
    at: { layer, batch: layer % batches, head: layer % heads }, query: queries - 1, key: keys >> 1,
  }));

describe("on traces that Python wrote", () => {
  for (const name of ["kinds.trace", "pair.trace", "long.trace"])
    it(`every sum on the paper adds up (${name})`, async () => {
      const source = openLocalSource(bytesOf(name));
      let seen = 0;
      for (const { at, query, key } of cellsOf(source)) {
        const [numbers, row] = await Promise.all([source.numbers(at, query, key), source.row(at, query)]);
        const work = workOf(source.info.layers[at.layer]!, numbers, row, query, key);
        expect(stationsOf(work, say).length).toBeGreaterThan(0);
        for (const step of work.steps) {
          const paper = document.createElement("div");
          for (const part of bodyOf(step, work, page)) if (part instanceof Node) paper.append(part);
          expect(
            [...paper.querySelectorAll(".check.wrong")].map(
              (one) => `${JSON.stringify(at)} ${query} ${key} ${step} ${one.textContent}`
            )
          ).toEqual([]);
          if (step === "softmax" && !work.blind) {
            const totals = [
              ...paper.querySelectorAll<HTMLElement>(".lines tr.sum td")
            ].map((cell) => Number(cell.title));
            expect(totals[2]).toBeCloseTo(numbers.total![work.r]!, 3);
            expect(totals[3]).toBeCloseTo(1, 4);
          }
        }
        expect(numbers.weights[work.r * numbers.columns.length + work.c]).toBe(row.weights[key]);
        seen++;
      }
      expect(seen).toBe(source.info.layers.length);
    }, 60_000);
});
