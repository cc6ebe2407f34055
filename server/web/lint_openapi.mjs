// Lints the OpenAPI document by the recommended rules of Redocly: ids, security of each operation, schemas, examples.
//
//     node server/web/lint_openapi.mjs        exit code 1 and a line for each problem, such as
//     /v1/events post: Every operation should have security defined on it or on the root level. (security-defined)

import { fileURLToPath } from "node:url";
import { createConfig, lint } from "@redocly/openapi-core";

const ref = fileURLToPath(new URL("../doc/openapi.json", import.meta.url));
const problems = await lint({ ref, config: await createConfig({ extends: ["recommended"] }) });
for (const { message, ruleId, location } of problems) {
  const pointer = decodeURIComponent(location[0]?.pointer ?? "").replace(/^#\/(paths\/)?/, "");
  const place = pointer.split("/").join(" ").replaceAll("~1", "/");
  process.stdout.write(`${place}: ${message} (${ruleId})\n`);
}
process.exitCode = problems.length > 0 ? 1 : 0;
