// Makes `dist/`, the files that browsers get, from the modules of this folder.
//
//     npm install && node server/web/build.mjs           # after every change of a module or style
//     node server/web/build.mjs --check                  # whether dist/ is what the sources make
//
// What is written here are plain ES modules, and they run in a browser and in tests as they are. Sent
// like that they are twice as many bytes in forty requests, so they are bundled and minified once, by
// esbuild, and the result is kept beside the sources: Node is needed to change these files, never to
// build or run the product. Each script and style sheet has a copy as brotli beside it, a tenth smaller
// than gzip, whose making takes too long for a start of the server:
//
//     dist/embed.js       22,398 bytes     as gzip 9,857
//     dist/embed.js.br     8,835 bytes

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, brotliDecompressSync, constants } from "node:zlib";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const dist = join(here, "dist");

/** @type {import("esbuild").BuildOptions} */
const common = {
  absWorkingDir: here,
  outdir: dist,
  bundle: true,
  minify: true,
  format: "esm",
  write: false,
  charset: "utf8",
  target: ["chrome123", "firefox121", "safari17.5"],
  external: ["*.woff2"],
  legalComments: "none",
};

// The console: what every page needs, and each page when it is opened. A page is what `routes.ts` imports.
const pages = [...readFileSync(join(here, "console/routes.ts"), "utf8").matchAll(/import\("\.\/pages\/(\w+)"\)/g)].map(
  ([, name]) => name,
);
/** @type {import("esbuild").BuildOptions} */
const consoleBuild = {
  ...common,
  outdir: join(dist, "console"),
  splitting: true,
  chunkNames: "chunk-[hash]",
  jsx: "automatic",
  jsxImportSource: "preact",
  metafile: true,
  entryPoints: Object.fromEntries([
    ["main", "console/main.tsx"],
    ...pages.map((name) => [name, `console/pages/${name}.tsx`]),
  ]),
  // Charts and console draw with the same copy of the view library.
  plugins: [
    {
      name: "one-preact",
      setup(build) {
        const vendored = { preact: "vendor/preact.js", "preact/hooks": "vendor/hooks.js" };
        build.onResolve({ filter: /^preact(\/hooks)?$/ }, ({ path }) => ({
          path: join(here, vendored[/** @type {keyof typeof vendored} */ (path)]),
        }));
      },
    },
  ],
  external: [...(common.external ?? []), "/sdk/*"],
};

const results = [
  // What is rarely used comes when it is; see embed/kit.js.
  await build({ ...common, splitting: true, entryPoints: { embed: "embed/main.js" }, chunkNames: "[name]-[hash]" }),
  await build({
    ...common,
    splitting: true,
    entryPoints: { message: "embed/message.js" },
    chunkNames: "[name]-[hash]",
  }),
  await build(consoleBuild),
  // What stands alone: the helper in the host's page, the demo, and the styles.
  await build({
    ...common,
    entryPoints: { helper: "host/embed.js", demo: "demo/demo.js" },
    external: ["/sdk/*"],
    mangleProps: /[a-z]_$/,
  }),
  await build({
    ...common,
    entryPoints: { embed: "embed/page.css", docs: "docs/page.css", demo: "demo/page.css", console: "console/page.css" },
  }),
];
const made = new Map(
  results.flatMap((result) => result.outputFiles ?? []).map((file) => [relative(dist, file.path), file.text]),
);

// The licences of the packages that are inside the bundles stand beside those of the vendored files.
const inside = new Set(
  results
    .flatMap(({ metafile }) => Object.entries(metafile?.inputs ?? {}))
    .flatMap(([path]) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? []),
);
const modules = join(here, "../../node_modules");
for (const name of inside) {
  const file = readdirSync(join(modules, name)).find((file) => /^licen[cs]e/i.test(file));
  if (!file) throw new Error(`${name} has no licence`);
  made.set(
    `../vendor/licenses/${name.replace("@", "").replace("/", "-")}.txt`,
    readFileSync(join(modules, name, file), "utf8"),
  );
}

mkdirSync(join(dist, "console"), { recursive: true });
const there = readdirSync(dist, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => relative(dist, join(entry.parentPath, entry.name)));
const licences = readdirSync(join(here, "vendor/licenses")).map((name) => `../vendor/licenses/${name}`);
there.push(...licences.filter((name) => made.has(name)));
const copied = new Map(
  [...made].filter(([name]) => /\.(js|css)$/.test(name)).map(([name, text]) => [`${name}.br`, text]),
);
const stale = there.filter((name) => !made.has(name) && !copied.has(name));
const changed = [...made].filter(
  ([name, text]) => !there.includes(name) || readFileSync(join(dist, name), "utf8") !== text,
);
// What a copy holds counts, and not its bytes: another version of Node may write them otherwise.
const changedCopies = [...copied].filter(([name, text]) => {
  try {
    return brotliDecompressSync(readFileSync(join(dist, name))).toString() !== text;
  } catch {
    return true;
  }
});

if (process.argv.includes("--check")) {
  const wrong = [...stale, ...[...changed, ...changedCopies].map(([name]) => name)];
  for (const name of wrong) console.error(`dist/${name} is not what the sources make: run node server/web/build.mjs`);
  process.exit(wrong.length ? 1 : 0);
}
for (const name of stale) rmSync(join(dist, name));
for (const [name, text] of changed) writeFileSync(join(dist, name), text);
for (const [name, text] of changedCopies) {
  const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
  writeFileSync(join(dist, name), brotliCompressSync(text, { params }));
}
