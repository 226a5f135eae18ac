// Makes the scripts that browsers get, one file each, from the modules in source/ (`npm run build`).
// `npm run build -- --check` writes nothing and says which of them is out of date.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const BUNDLES = {
  "charts/canvas/canvas.bundle.js": "charts/canvas/source/entry.js",
  "charts/canvas/carrier.bundle.js": "charts/canvas/source/carrier.js",
  "charts/canvas/painted.bundle.js": "charts/canvas/source/painted.js",
  "charts/canvas/pdf.bundle.js": "charts/canvas/source/pdf/writer.js",
  "charts/canvas/pdf_carrier.bundle.js": "charts/canvas/source/pdf/carrier.js",
  "charts/canvas/picture.bundle.js": "charts/canvas/source/picture.js",
  "ui/show/exports.bundle.js": "ui/show/exports.js",
  "ui/show/save_file.bundle.js": "ui/show/save_file.js",
};

// tests/charts/test_bundles.py works out the same, so that it can tell without node whether a bundle is current.
function digestOfSources() {
  const source = join(ROOT, "charts/canvas/source");
  const modules = readdirSync(source, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const files = modules.map((entry) => relative(ROOT, join(entry.parentPath ?? entry.path, entry.name)));
  const shown = ["exports", "plotly_paper", "plotly_picture", "plotly_turned", "save_file"];
  const others = ["charts/canvas/build.js", "charts/canvas/page.html", ...shown.map((name) => `ui/show/${name}.js`)];
  const digest = createHash("sha256");
  for (const file of [...files, ...others].sort()) digest.update(`${file}\n`).update(readFileSync(join(ROOT, file)));
  return digest.digest("hex").slice(0, 16);
}

const digest = digestOfSources();
const late = [];
for (const [bundle, entry] of Object.entries(BUNDLES)) {
  const { outputFiles } = await build({
    absWorkingDir: ROOT,
    entryPoints: [entry],
    banner: { js: `// npm run build: ${digest}` }, // a line of its own: Streamlit takes one line for a file name
    bundle: true,
    charset: "utf8",
    format: "esm",
    legalComments: "none",
    external: ["canvg", "dompurify", "html2canvas"], // for pages of HTML, which jsPDF can write, too
    loader: { ".css": "text", ".html": "text", ".ttf": "base64" },
    minifyWhitespace: true, // names stay, for whoever reads along in the browser
    minifySyntax: entry.includes("/pdf/"),
    minifyIdentifiers: entry.includes("/pdf/"), // other people's code, three quarters of a megabyte of it
    target: "es2022",
    write: false,
  });
  const [{ text }] = outputFiles;
  const file = join(ROOT, bundle);
  if (!process.argv.includes("--check")) writeFileSync(file, text);
  else if (readFileSync(file, "utf8") !== text) late.push(bundle);
}
if (late.length) {
  console.error(`out of date: ${late.join(", ")}; run "npm run build" and commit what it makes`);
  process.exit(1);
}
