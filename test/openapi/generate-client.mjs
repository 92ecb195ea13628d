/**
 * Generates a TypeScript client: `node generate-client.mjs <openapi.json> <directory>`.
 *
 * @hey-api/openapi-ts uses the TypeScript compiler API, which TypeScript 7 no longer has; the compiler that
 *   @bufbuild/protoplugin depends on still has it.
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
  // Node runs the generated code without a build.
  output: { path: output, module: { extension: ".ts" } },
  logs: { level: "silent" },
});
