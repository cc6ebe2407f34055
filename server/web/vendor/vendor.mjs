// Makes the files of this folder from an installed node_modules.
//
//     node vendor.mjs path/to/node_modules
//
// The browser gets exactly what is in the repository, so third-party modules are copied here once per
// upgrade: bare imports become relative ones, source-map comments go, and VENDOR.json records what
// each file is and its hash. Node is needed to run this script, never to build or run the product.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const modules = process.argv[2];
if (!modules) {
  console.error("usage: node vendor.mjs path/to/node_modules");
  process.exit(1);
}

/** Module files: the package, its file, and our name for it. */
const SCRIPTS = [
  { package: "preact", from: "dist/preact.mjs", to: "preact.js", bare: "preact" },
  { package: "preact", from: "hooks/dist/hooks.mjs", to: "hooks.js", bare: "preact/hooks" },
  { package: "htm", from: "dist/htm.mjs", to: "htm.js", bare: "htm" },
];

const FONTS = [
  { package: "@fontsource-variable/inter", from: "files/inter-latin-wght-normal.woff2", to: "../fonts/inter.woff2" },
];

const relative = new Map(SCRIPTS.map((script) => [script.bare, `./${script.to}`]));

/** Rewrites `from"preact"` to `from"./preact.js"`; a bare import that is not vendored is an error. */
function rewriteImports(source, file) {
  return source
    .replace(/\/\/# sourceMappingURL=.*\s*$/gm, "")
    .replace(/\b(from|import)(\s*)"([^"]+)"/g, (whole, word, gap, name) => {
      if (name.startsWith(".")) return whole;
      const target = relative.get(name);
      if (!target) throw new Error(`${file}: imports ${name}, which is not vendored`);
      return `${word}${gap}"${target}"`;
    })
    .trimEnd() + "\n";
}

function record(entry, bytes) {
  const manifest = JSON.parse(readFileSync(join(modules, entry.package, "package.json"), "utf8"));
  const licenseFile = `licenses/${entry.package.replace("@", "").replace("/", "-")}.txt`;
  writeFileSync(join(here, licenseFile), readFileSync(join(modules, entry.package, "LICENSE")));
  writeFileSync(join(here, entry.to), bytes);
  return {
    file: entry.to,
    package: entry.package,
    version: manifest.version,
    license: manifest.license,
    license_file: licenseFile,
    sha256: createHash("sha256").update(bytes).digest("hex"),
  };
}

mkdirSync(join(here, "licenses"), { recursive: true });
mkdirSync(join(here, "../fonts"), { recursive: true });

const files = [
  ...SCRIPTS.map((script) => {
    const source = readFileSync(join(modules, script.package, script.from), "utf8");
    return record(script, Buffer.from(rewriteImports(source, script.from)));
  }),
  ...FONTS.map((font) => record(font, readFileSync(join(modules, font.package, font.from)))),
];
writeFileSync(join(here, "VENDOR.json"), JSON.stringify({ files }, null, 2) + "\n");
