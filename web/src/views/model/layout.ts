/** Where the heads stand in the model view: layers × heads, or one after the other in the order of a measure. */

export const HEADER = 26; // head numbers
export const GAP = 3; // around each picture
const WRITTEN = 32; // two lines below each picture where it is sorted

export interface At {
  readonly layer: number;
  readonly head: number;
}

export interface HeadGrid {
  readonly sorted: boolean;
  readonly cell: number; // pixels on a side
  readonly columns: number;
  readonly rows: number;
  readonly rowHeight: number;
  readonly left: number; // what stands before the first column
  readonly top: number;
  readonly heads: readonly number[]; // of each layer
  readonly order: readonly At[]; // where it is sorted; empty elsewhere
}

/** A grid for this room. Cells shrink to fit the width, but not below what can be seen; few heads are larger. */
export function gridOf(
  width: number, height: number, heads: readonly number[], label: number, order: readonly At[] | null,
): HeadGrid {
  if (order === null) {
    const columns = Math.max(1, ...heads);
    const largest = Math.max(96, Math.min(176, Math.floor((height - HEADER - 8) / heads.length)));
    const cell = Math.max(28, Math.min(largest, Math.floor((width - label - 8) / columns)));
    const rows = heads.length;
    return { sorted: false, cell, columns, rows, rowHeight: cell, left: label, top: HEADER, heads, order: [] };
  }
  const wanted = order.length > 200 ? 64 : 92, columns = Math.max(1, Math.floor((width - 16) / wanted));
  const cell = Math.min(Math.floor((width - 16) / columns), wanted + 12);
  const rows = Math.ceil(order.length / columns);
  return { sorted: true, cell, columns, rows, rowHeight: cell + WRITTEN, left: 8, top: 8, heads, order };
}

/** How large a picture to ask for: not finer than it is painted, or weights would fall between the pixels. */
export function sizeOf(grid: HeadGrid, ratio: number): number {
  const room = (grid.cell - 2 * GAP) * ratio, most = grid.heads.reduce((a, b) => a + b, 0) > 400 ? 48 : 96;
  return [96, 64, 48, 32, 24].find((size) => size <= room && size <= most) ?? 16;
}

/** How large the whole is. */
export const extent = (grid: HeadGrid): { readonly width: number; readonly height: number } => ({
  width: grid.left + grid.columns * grid.cell + 8, height: grid.top + grid.rows * grid.rowHeight + 8,
});

/** The head at a place of the grid; null where there is none. */
export function headAt(grid: HeadGrid, row: number, column: number): At | null {
  if (row < 0 || column < 0 || column >= grid.columns || row >= grid.rows) return null;
  if (grid.sorted) return grid.order[row * grid.columns + column] ?? null;
  return column < (grid.heads[row] ?? 0) ? { layer: row, head: column } : null;
}

/** The place of a head; null where the grid has it not. */
export function placeOf(grid: HeadGrid, at: At): { readonly row: number; readonly column: number } | null {
  if (!grid.sorted) return headAt(grid, at.layer, at.head) === null ? null : { row: at.layer, column: at.head };
  const i = grid.order.findIndex((other) => other.layer === at.layer && other.head === at.head);
  return i < 0 ? null : { row: Math.floor(i / grid.columns), column: i % grid.columns };
}

/** The upper left corner of a place, in the whole. */
export const corner = (grid: HeadGrid, row: number, column: number): { readonly x: number; readonly y: number } => ({
  x: grid.left + column * grid.cell, y: grid.top + row * grid.rowHeight,
});

/** First and last of the rows of which something is seen. */
export function visibleRows(grid: HeadGrid, scroll: number, height: number): readonly [number, number] {
  const first = Math.max(0, Math.floor(scroll / grid.rowHeight));
  return [first, Math.min(grid.rows - 1, Math.ceil((scroll + height - grid.top) / grid.rowHeight) - 1)];
}

/** The head under a point of the window; what scrolls below header and labels does not count. */
export function headUnder(grid: HeadGrid, x: number, y: number, left: number, top: number): At | null {
  if (!grid.sorted && (x < grid.left || y < grid.top)) return null;
  const row = Math.floor((y + top - grid.top) / grid.rowHeight);
  return headAt(grid, row, Math.floor((x + left - grid.left) / grid.cell));
}

/** Where to scroll so that a place is seen whole. */
export function scrollToCell(
  grid: HeadGrid, row: number, column: number, left: number, top: number, width: number, height: number,
): { readonly left: number; readonly top: number } {
  const { x, y } = corner(grid, row, column), inset = grid.sorted ? { x: 0, y: 0 } : { x: grid.left, y: grid.top };
  const along = (start: number, size: number, scroll: number, before: number, room: number): number =>
    start - before < scroll ? start - before : start + size > scroll + room ? start + size - room : scroll;
  return { left: along(x, grid.cell, left, inset.x, width), top: along(y, grid.rowHeight, top, inset.y, height) };
}

/** The head after an arrow key: the neighbour in the grid, or the same at its edge. */
export function stepHead(grid: HeadGrid, at: At, pressed: string): At | null {
  const steps: Readonly<Record<string, readonly [number, number]>> = {
    ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1],
  };
  const step = steps[pressed], from = placeOf(grid, at);
  if (step === undefined) return null;
  if (from === null) return headAt(grid, 0, 0);
  if (grid.sorted && step[0] === 0) { // sorted heads read like a text
    const i = from.row * grid.columns + from.column + step[1];
    return grid.order[Math.max(0, Math.min(grid.order.length - 1, i))] ?? at;
  }
  return headAt(grid, from.row + step[0], from.column + step[1]) ?? at;
}
