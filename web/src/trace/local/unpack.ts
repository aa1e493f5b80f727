/** The bytes of a trace file from the text that a page holds: base64, zlib, and bytes sorted by place (packed.py). */
import { SIZES } from "../bytes";
import { readContainer } from "./container";
import { TraceError } from "./traceError";

/** The file, whole; a sentence where the text is cut or damaged. `size` is how many bytes there must be. */
export async function unpack(text: string, size: number): Promise<Uint8Array> {
  const sorted = await inflate(decodeBase64(text));
  if (sorted.length !== size)
    throw new TraceError(
      `The page holds ${sorted.length} bytes of its trace, but ${size} were put in; get the file again.`, "file.page",
    );
  return joinBytePlanes(sorted);
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  let letters: string;
  try {
    letters = atob(text);
  } catch {
    throw new TraceError("The numbers of the page are cut or damaged; get the file again.", "file.page");
  }
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

async function inflate(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate")); // it checks its checksum
  try {
    return new Uint8Array(await new Response(stream).arrayBuffer());
  } catch {
    throw new TraceError("The numbers of the page are cut or damaged; get the file again.", "file.page");
  }
}

/** Puts the bytes of each number together again: all first bytes stand before all second ones. */
export function joinBytePlanes(sorted: Uint8Array): Uint8Array {
  const { arrays } = readContainer(sorted);
  for (const [name, { dtype, bytes }] of arrays) {
    const size = SIZES[dtype]!;
    if (size === 1 || name.startsWith("pad/")) continue;
    const planes = bytes.slice(), count = bytes.length / size;
    for (let plane = 0; plane < size; plane++)
      for (let i = 0, from = plane * count, to = plane; i < count; i++, to += size) bytes[to] = planes[from + i]!;
  }
  return sorted;
}
