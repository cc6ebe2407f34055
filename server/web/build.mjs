// Makes `dist/`, the files that browsers get, from the modules of this folder.
//
//     npm install && node server/web/build.mjs           # after every change of a module or style
//     node server/web/build.mjs --check                  # whether dist/ is what the sources make
//
// What is written here are plain ES modules, and they run in a browser and in tests as they are. Sent
// like that they are twice as many bytes in forty requests, so they are bundled and minified once, by
// esbuild, and the result is kept beside the sources: Node is needed to change these files, never to
// build or run the product.

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const dist = join(here, "dist");

/** @type {import("esbuild").BuildOptions} */
const common = {
  absWorkingDir: here, outdir: dist, bundle: true, minify: true, format: "esm", write: false, charset: "utf8",
  target: ["chrome123", "firefox121", "safari17.5"], external: ["*.woff2"], legalComments: "none",
};

const results = [
  // What is rarely used comes when it is; see embed/kit.js.
  await build({ ...common, splitting: true, entryPoints: { embed: "embed/main.js" }, chunkNames: "[name]-[hash]" }),
  await build({ ...common, splitting: true, entryPoints: { message: "embed/message.js" }, chunkNames: "[name]-[hash]" }),
  // What stands alone: the helper in the host's page, the demo, and the styles.
  await build({ ...common, entryPoints: { helper: "host/embed.js", demo: "demo/demo.js" }, external: ["/sdk/*"], mangleProps: /[a-z]_$/ }),
  await build({ ...common, entryPoints: { embed: "embed/page.css", docs: "docs/page.css", demo: "demo/page.css" } }),
];
const made = new Map(results.flatMap((result) => result.outputFiles ?? []).map((file) => [basename(file.path), file.text]));

mkdirSync(dist, { recursive: true });
const there = readdirSync(dist);
const stale = there.filter((name) => !made.has(name));
const changed = [...made].filter(([name, text]) => !there.includes(name) || readFileSync(join(dist, name), "utf8") !== text);

if (process.argv.includes("--check")) {
  for (const name of [...stale, ...changed.map(([name]) => name)]) console.error(`dist/${name} is not what the sources make: run node server/web/build.mjs`);
  process.exit(stale.length + changed.length ? 1 : 0);
}
for (const name of stale) rmSync(join(dist, name));
for (const [name, text] of changed) writeFileSync(join(dist, name), text);
