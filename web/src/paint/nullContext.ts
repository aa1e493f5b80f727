/** A context that paints nothing, for where the browser gives none (too many canvases, or no canvas at all). */

const LETTER = 7; // pixels, about

/** Takes every call and every property; text is measured by its length. */
export function nullContext(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
  const members: Record<string | symbol, unknown> = {
    canvas,
    measureText: (text: string) => ({ width: LETTER * text.length }),
    createPattern: () => ({ setTransform: () => undefined }),
    createLinearGradient: () => ({ addColorStop: () => undefined }),
    createImageData: (width: number, height: number) =>
      ({ width, height, data: new Uint8ClampedArray(4 * width * height) }),
    getTransform: () => ({ a: 1, b: 0, c: 0, d: 1, e: 0, f: 0 }),
  };
  return new Proxy(members, {
    get: (target, name) => (name in target ? target[name] : () => undefined),
    set: (target, name, value: unknown) => {
      target[name] = value;
      return true;
    },
  }) as unknown as CanvasRenderingContext2D;
}
