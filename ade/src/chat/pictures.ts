import type { WireContent } from "./wire";

/** A picture that waits to be sent. `url`: a blob of this page. */
export interface Attachment {
  name: string;
  mediaType: string;
  data: string;
  bytes: number;
  url: string;
}

export const TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const MEBIBYTE = 1024 * 1024;
const MOST_EACH = 20 * MEBIBYTE;
// As base64 they are a third longer, and a body has at most 32 MiB.
const MOST_TOGETHER = 23 * MEBIBYTE;

/** Returns the pictures with more of them, and what is wrong with those that were left out. */
export async function attach(
  files: File[],
  pictures: Attachment[],
): Promise<{ pictures: Attachment[]; problem: string }> {
  const all = [...pictures];
  let problem = "";
  for (const file of files) {
    const together = all.reduce((sum, each) => sum + each.bytes, file.size);
    const refusal = refusalOf(file, together);
    if (refusal) problem = refusal;
    // oxlint-disable-next-line no-await-in-loop -- one large file in memory at a time
    else all.push(await read(file));
  }
  return { pictures: all, problem };
}

export function refusalOf(file: { name: string; type: string; size: number }, together: number): string {
  if (!TYPES.includes(file.type)) return `${file.name} is no png, jpeg, gif or webp picture.`;
  if (file.size > MOST_EACH) return `${file.name} has ${mebibytes(file.size)} MiB; a picture may have 20.`;
  if (together > MOST_TOGETHER) return `With ${file.name} the pictures have ${mebibytes(together)} MiB; a message may have 23.`;
  return "";
}

function mebibytes(bytes: number): string {
  return (bytes / MEBIBYTE).toFixed(1);
}

async function read(file: File): Promise<Attachment> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let binary = "";
  for (let at = 0; at < bytes.length; at += 32_768) binary += String.fromCharCode(...bytes.subarray(at, at + 32_768));
  const url = URL.createObjectURL(file);
  return { name: file.name, mediaType: file.type, data: btoa(binary), bytes: file.size, url };
}

/** Returns the content of a message: a text alone, or parts. */
export function contentWith(text: string, pictures: Attachment[]): string | WireContent[] {
  if (!pictures.length) return text;
  const parts: WireContent[] = pictures.map((picture) => ({
    type: "image",
    source: { type: "base64", media_type: picture.mediaType, data: picture.data },
  }));
  return text.trim() ? [...parts, { type: "text", text }] : parts;
}

/** Returns base64 as a blob. */
export function blobOf(data: string, mediaType: string): Blob {
  const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
  return new Blob([bytes], { type: TYPES.includes(mediaType) ? mediaType : "application/octet-stream" });
}
