// Makes the scripts that browsers get, one file each, from the modules in source/ (`npm run build`).
// `npm run build -- --check` writes nothing and says which of them is out of date.

import { createHash } from "node:crypto";
import { gunzipSync, gzipSync } from "node:zlib";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build, transform } from "esbuild";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const BUNDLES = {
  "charts/canvas/by_hand.bundle.js": "charts/canvas/source/by_hand/component.js",
  "charts/canvas/canvas.bundle.js": "charts/canvas/source/entry.js",
  "charts/canvas/loader.bundle.js": "charts/canvas/source/loader.js",
  "charts/canvas/pdf.bundle.js": "charts/canvas/source/pdf/writer.js",
  "ui/shell/token_rows/token_rows.bundle.js": "ui/shell/token_rows/token_rows.js",
  "web/site.bundle.js": "web/source/site.js",
  "web/worker.bundle.js": "web/source/worker.js",
};
// What the web page runs models with, deflated: a quarter of its size, whatever server sends it.
const RUNTIME = "web/onnxruntime.wasm.gz";
const RUNTIME_SOURCE = "node_modules/onnxruntime-web/dist/ort-wasm-simd-threaded.wasm";

// tests/charts/test_bundles.py works out the same, so that it can tell without node whether a bundle is current.
function digestOfSources(...folders) {
  const modules = folders
    .flatMap((folder) => readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile());
  const files = modules.map((entry) => relative(ROOT, join(entry.parentPath ?? entry.path, entry.name)));
  const others = ["charts/canvas/build.js", "charts/canvas/page.html", "ui/shell/token_rows/token_rows.js"];
  const digest = createHash("sha256");
  for (const file of [...files, ...others].sort()) digest.update(`${file}\n`).update(readFileSync(join(ROOT, file)));
  return digest.digest("hex").slice(0, 16);
}

// Style sheets are text in a bundle: without comments and spaces, which nobody reads there.
const smallStyles = {
  name: "small styles",
  setup: ({ onLoad }) =>
    onLoad({ filter: /\.css$/ }, async ({ path }) => ({
      contents: (await transform(readFileSync(path, "utf8"), { loader: "css", minify: true })).code,
      loader: "text",
    })),
};

const digests = {
  canvas: digestOfSources("charts/canvas/source"),
  web: digestOfSources("charts/canvas/source", "web/source"),
};
const late = [];
for (const [bundle, entry] of Object.entries(BUNDLES)) {
  const { outputFiles } = await build({
    absWorkingDir: ROOT,
    entryPoints: [entry],
    banner: { js: `// npm run build: ${bundle.startsWith("web/") ? digests.web : digests.canvas}` }, // a line of its own: Streamlit takes one line for a file name
    bundle: true,
    charset: "utf8",
    format: "esm",
    legalComments: "none",
    external: ["canvg", "dompurify", "html2canvas"], // for pages of HTML, which jsPDF can write, too
    loader: { ".html": "text", ".ttf": "base64" },
    plugins: [smallStyles],
    minifyWhitespace: true, // names stay, for whoever reads along in the browser
    minifySyntax: /\/pdf\/|worker/.test(entry),
    minifyIdentifiers: /\/pdf\/|worker/.test(entry), // other people's code, most of it
    target: "es2022",
    write: false,
  });
  const [{ text }] = outputFiles;
  const file = join(ROOT, bundle);
  if (!process.argv.includes("--check")) writeFileSync(file, text);
  else if (readFileSync(file, "utf8") !== text) late.push(bundle);
}
const packed = gzipSync(readFileSync(join(ROOT, RUNTIME_SOURCE)), { level: 9 });
packed[9] = 255; // the system that packed it, which would make other bytes of the same
if (!process.argv.includes("--check")) writeFileSync(join(ROOT, RUNTIME), packed);
else if (!gunzipSync(readFileSync(join(ROOT, RUNTIME))).equals(readFileSync(join(ROOT, RUNTIME_SOURCE))))
  late.push(RUNTIME);
if (late.length) {
  console.error(`out of date: ${late.join(", ")}; run "npm run build" and commit what it makes`);
  process.exit(1);
}
