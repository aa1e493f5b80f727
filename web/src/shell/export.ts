/** Taking along: a picture as SVG or PNG, a table as CSV, a page as one file, a selection as a link. */
const SHARP = 2; // pixels of a PNG per pixel of its SVG
const LARGEST = 16384; // pixels on a side that browsers still draw

/** Lets the reader keep bytes as a file. */
export function saveFile(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000); // the download has begun by then
}

/** A name that every file system takes: letters, digits, dots, dashes. */
export const fileName = (name: string, ending: string): string =>
  `${name.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[-.]+|[-.]+$/g, "").slice(0, 60) || "regard"}.${ending}`;

const cell = (value: string | number): string => {
  const text = typeof value === "number" ? String(value) : value;
  return /[",\r\n]/.test(text) || text !== text.trim() ? `"${text.replaceAll('"', '""')}"` : text;
};

/** A table as RFC 4180 wants it; the mark at its start tells spreadsheets that it is UTF-8. */
export const toCsv = (table: readonly (readonly (string | number)[])[]): string =>
  `\uFEFF${table.map((line) => line.map(cell).join(",")).join("\r\n")}\r\n`;

/** The size that an SVG gives itself. */
export function sizeOf(svg: string): { width: number; height: number } {
  const root = /<svg\b[^>]*>/.exec(svg)?.[0] ?? "";
  const of = (name: string): number => Number(new RegExp(`\\s${name}="([\\d.]+)`).exec(root)?.[1] ?? 0);
  return { width: of("width") || 800, height: of("height") || 600 };
}

/** The same picture in pixels, twice as fine as on an ordinary screen. */
export async function toPng(svg: string, ground: string): Promise<Blob> {
  const { width, height } = sizeOf(svg);
  const sharp = Math.min(SHARP, LARGEST / Math.max(width, height));
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = Math.max(1, Math.round(width * sharp));
    canvas.height = Math.max(1, Math.round(height * sharp));
    const context = canvas.getContext("2d");
    if (context === null) throw new Error("no canvas");
    context.fillStyle = ground;
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done, fail) =>
      canvas.toBlob((blob) => (blob ? done(blob) : fail(new Error("no picture"))), "image/png"));
  } finally {
    URL.revokeObjectURL(address);
  }
}

/** Puts a text on the clipboard; false where the browser forbids it. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // a page from a file, an unfocused window, a notebook's frame
  }
}
