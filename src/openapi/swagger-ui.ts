/** The files of Swagger UI, which shows the description of the REST calls. */
import { pathToFileURL } from "node:url";
import { findProgramFile, isCompiled } from "../program-files.ts";

/** Those that the page loads. The compiled program has copies of them beside the page. */
export const swaggerUiFiles = ["swagger-ui-bundle.js", "swagger-ui.css", "favicon-32x32.png"] as const;

/** Finds one of them. */
export function findSwaggerUi(name: (typeof swaggerUiFiles)[number]): URL {
  return isCompiled
    ? pathToFileURL(findProgramFile(`openapi/reference/${name}`))
    : new URL(import.meta.resolve(`swagger-ui-dist/${name}`));
}
