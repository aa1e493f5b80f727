/** Pictures for a model that sees: it shrinks them anyway, so that a large one need not travel. */

const ENOUGH = 700_000; // characters of a data: address that is sent as it is
const SIDE = 1024; // pixels of the longer side otherwise

/** The same picture, not larger than a server takes; one that cannot be read is left for the server to refuse. */
export async function shrinkPicture(picture: string): Promise<string> {
  if (picture.length <= ENOUGH) return picture;
  const image = new Image();
  image.src = picture;
  try {
    await image.decode();
  } catch {
    return picture;
  }
  const scale = Math.min(1, SIDE / Math.max(image.naturalWidth, image.naturalHeight, 1));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(image.naturalWidth * scale));
  canvas.height = Math.max(1, Math.round(image.naturalHeight * scale));
  const context = canvas.getContext("2d");
  if (context === null) return picture;
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/jpeg", 0.92);
}
