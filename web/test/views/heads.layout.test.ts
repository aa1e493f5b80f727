import { describe, expect, it } from "vitest";
import {
  along, aside, columns, ending, HEADER, LOWEST_ROW as ROW, middle, rowOf, visibleQueries, type Sight, tall, scrollToQuery, tokenUnder,
} from "../../src/views/heads/layout";
import { lineAt, stepQuery, stepKey, hitAt } from "../../src/views/heads/pointer";

const sight = (scroll = 0, more: Partial<Sight> = {}): Sight => ({
  width: 900, height: 330, row: ROW, scroll, queries: 1000, keys: 700, ...columns(900, 80, 120), ...more,
});

describe("the layout of the heads view", () => {
  it("sees as many tokens as fit, wherever it is scrolled", () => {
    for (const scroll of [0, 5, 24, 1003, ROW * 999]) {
      const [first, last] = visibleQueries(sight(scroll), 1000);
      for (const place of [first, last]) {
        const y = middle(sight(scroll), place);
        expect(y + ROW / 2).toBeGreaterThan(HEADER);
        expect(y - ROW / 2).toBeLessThan(330);
      }
      if (first > 0) expect(middle(sight(scroll), first - 1) + ROW / 2).toBeLessThanOrEqual(HEADER);
      if (last < 999) expect(middle(sight(scroll), last + 1) - ROW / 2).toBeGreaterThanOrEqual(330);
    }
    expect(visibleQueries(sight(ROW * 800), 700)).toEqual([0, -1]);
  });

  it("keeps both columns and the lines inside any width", () => {
    for (const width of [200, 320, 700, 1600])
      for (const names of [10, 100, 5000]) {
        const { left, right, queryWidth, keyWidth } = columns(width, names, names * 2);
        expect(left - queryWidth).toBeGreaterThanOrEqual(0);
        expect(right).toBeGreaterThan(left);
        if (width >= 320) expect(right + keyWidth).toBeLessThanOrEqual(width);
      }
  });

  it("finds the token under a point", () => {
    const here = sight(100);
    expect(tokenUnder(here, here.left - 5, middle(here, 7))).toEqual({ query: 7, key: null });
    expect(tokenUnder(here, here.right + 5, middle(here, 9))).toEqual({ query: null, key: 9 });
    expect(tokenUnder(here, here.left - 5, HEADER - 3)).toEqual({ query: null, key: null });
    expect(tokenUnder(sight(0, { queries: 3 }), here.left - 5, middle(sight(), 3))).toEqual({ query: null, key: null });
  });

  it("scrolls only to what is not seen", () => {
    expect(scrollToQuery(sight(100), 8)).toBe(100);
    const there = scrollToQuery(sight(100), 500), [first, last] = visibleQueries(sight(there), 1000);
    expect(first).toBeLessThan(500);
    expect(last).toBeGreaterThan(500);
    expect(tall(ROW, 3, 8)).toBe(tall(ROW, 8, 3));
    expect([rowOf(330, 1000), rowOf(330, 10), rowOf(330, 2)]).toEqual([ROW, 29, 44]);
  });

  it("sends lines to unseen keys beyond the edge, further ones steeper", () => {
    const here = sight(ROW * 100);
    expect(ending(here, 101)).toEqual({ y: middle(here, 101), outside: false });
    const [near, far, below] = [ending(here, 90), ending(here, 2), ending(here, 600)];
    expect(far.y).toBeLessThan(near.y);
    expect(near.y).toBeLessThan(HEADER);
    expect(below.y).toBeGreaterThan(here.height);
    expect(far.y).toBeGreaterThan(-200);
  });

  it("finds the line under a point by its own curve", () => {
    const here = sight(), lines = [
      { query: 1, key: 8, head: 0, weight: 0.4 }, { query: 8, key: 1, head: 0, weight: 0.3 },
        { query: 5, key: 5, head: 2, weight: 0.2 },
    ];
    for (const line of lines) {
      const x = here.left + (here.right - here.left) * 0.2;
      const y = along(middle(here, line.query), middle(here, line.key), 0.2) + aside(here, [0, 2], line.head);
      expect(lineAt(here, lines, [0, 2], x, y)).toBe(line);
    }
    expect(lineAt(here, lines, [0, 2], here.left + 9, middle(here, 3))).toBeNull();
    expect(hitAt(here, lines, [0, 2], here.left - 3, middle(here, 4))).toEqual({ query: 4, key: null, line: null });
  });
});

describe("the keyboard of the heads view", () => {
  it("moves the query and stays inside", () => {
    expect(stepQuery("ArrowDown", null, 5, 3)).toBe(0);
    expect(stepQuery("ArrowUp", null, 5, 3)).toBe(4);
    expect(stepQuery("ArrowDown", 4, 5, 3)).toBe(4);
    expect(stepQuery("PageUp", 4, 5, 3)).toBe(1);
    expect(stepQuery("End", 0, 5, 3)).toBe(4);
    expect(stepQuery("x", 0, 5, 3)).toBeNull();
    expect(stepQuery("Home", null, 0, 3)).toBeNull();
  });

  it("goes through the keys of a query by weight", () => {
    const own = [3, 0, 7].map((key, i) => ({ query: 2, key, head: 1, weight: 0.5 - i / 10 }));
    expect(stepKey("ArrowRight", null, own)).toBe(3);
    expect(stepKey("ArrowRight", 3, own)).toBe(0);
    expect(stepKey("ArrowRight", 7, own)).toBe(7);
    expect(stepKey("ArrowLeft", 0, own)).toBe(3);
    expect(stepKey("ArrowRight", 0, [])).toBeNull();
  });
});
