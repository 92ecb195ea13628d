/**
 * Generates a TypeScript client: `node generate-client.mjs <openapi.json> <directory>`.
 *
 * @hey-api/openapi-ts builds on the interface of the TypeScript compiler, which TypeScript 7 no longer has; the one
 * that @bufbuild/protoplugin brings along still does.
 */
import { createRequire, registerHooks } from "node:module";
import { pathToFileURL } from "node:url";

const [, , input, output] = process.argv;
const require = createRequire(import.meta.url);
const compiler = createRequire(require.resolve("@bufbuild/protoplugin")).resolve("typescript");
registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier === "typescript" ? pathToFileURL(compiler).href : specifier, context),
});
const { createClient } = await import("@hey-api/openapi-ts");
await createClient({
  input,
  // Node runs what it writes as it is.
  output: { path: output, module: { extension: ".ts" } },
  logs: { level: "silent" },
});
