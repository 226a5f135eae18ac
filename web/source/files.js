// Files of the site: fetched once and kept, checked against their fingerprints, inflated where their name ends in .gz.

import { fromBase64 } from "../../charts/canvas/source/toolkit/base64.js";

// files: [{ name, path, bytes, sha256, split }] -> bytes by name without .gz; told(bytes) as they arrive
export async function fetchFiles(files, told) {
  const found = {};
  await Promise.all(
    files.map(async (file) => {
      const bytes = (await keptBytes(file, told)) ?? (await fetchAndKeep(file, told));
      const name = file.as ?? file.name.replace(/\.gz$/, "");
      const whole = file.name.endsWith(".gz") ? await gunzip(bytes) : bytes;
      found[name] = file.split === undefined ? whole : joined(whole, file.split);
    }),
  );
  return found;
}

// A browser keeps files for pages with https (or of this machine) only, and none in a private window.
const KEPT = "glassformer-models";
const openCache = () => globalThis.caches?.open(KEPT).catch(() => null) ?? null;
const keyOf = ({ path, sha256 }) => `${path.split("#")[0]}?${sha256}`;

async function keptBytes(file, told) {
  if (!file.sha256 || file.content !== undefined) return null;
  const response = await (await openCache())?.match(keyOf(file));
  if (!response) return null;
  told(file.bytes);
  return new Uint8Array(await response.arrayBuffer());
}

async function fetchAndKeep(file, told) {
  let bytes = await fetchOne(file, told);
  await check(file, bytes).catch(async () => {
    // The browser's own cache may hold a broken copy, which it would give again at every try.
    bytes = await fetchOne(file, () => {}, { cache: "reload" });
    await check(file, bytes);
  });
  const cache = file.content === undefined && file.sha256 ? await openCache() : null;
  if (!cache) return bytes;
  // What had the same name before is of an older site.
  for (const old of await cache.keys()) if (old.url.startsWith(`${file.path}?`)) await cache.delete(old);
  await cache.put(keyOf(file), new Response(bytes)).catch(() => {}); // no room: it is loaded again next time
  return bytes;
}

async function fetchOne({ path, bytes: size, content }, told, how = {}) {
  if (content !== undefined) {
    told(size);
    return fromBase64(content); // in the single file
  }
  const response = await fetch(path, how);
  if (!response.ok) throw new Error(`${path}: HTTP ${response.status}`);
  const parts = [];
  const reader = response.body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    told(value.length);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

async function check({ path, sha256 }, bytes) {
  if (!sha256 || !globalThis.crypto?.subtle) return; // a page without https has no way to work it out
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  const found = [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  if (found !== sha256) throw new Error(`${path}: ${found.slice(0, 12)} ≠ ${sha256.slice(0, 12)}`);
}

async function gunzip(bytes) {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes; // a server that sent it with Content-Encoding: gzip
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// From byte `begin` on, all high bytes of two-byte numbers stand before all low ones, as web/site.py writes weights.
function joined(bytes, begin) {
  const whole = bytes.slice();
  const half = (bytes.length - begin) / 2;
  for (let k = 0; k < half; k++) {
    whole[begin + 2 * k] = bytes[begin + half + k];
    whole[begin + 2 * k + 1] = bytes[begin + k];
  }
  return whole;
}
