import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..");
const everything = /.*/;

/** Room → the rooms it may import besides itself; packages and node: are free to all. */
const mayImport: Record<string, RegExp> = {
  main: everything,
  app: /^(?!main$)/,
  config: /^$/,
  "store-settings": /^(config|storage)$/,
  errors: /^gen$/,
  "first-calls": /^$/,
  crypto: /^$/,
  storage: /^crypto$/,
  commands: /^(config|crypto|storage)$|^services\//,
  fields: /^(errors|crypto|storage)$/,
  services: /^(gen|errors|fields|crypto|storage)$/,
  protocol: /^(gen|errors)$/,
  transcoding: /^(gen|errors|protocol)$/,
  pages: /^(protocol|transcoding)$/,
  openapi: /^(gen|errors|pages|transcoding)$/,
  protos: /^(gen|pages|transcoding)$/,
  server: /^(gen|errors|protocol|transcoding)$/,
  cli: /^(gen|crypto)$/,
  console: /^(gen|pages)$/,
  // The printer of protos, without which there is no gen.
  setup: /^protos$/,
  qsp: /^setup$/,
};

/** The room of a path: its first part under src, without an ending; each service is a room of its own. */
function roomOf(path: string): string {
  if (!path.startsWith("src/")) return path.split("/")[0] ?? "";
  const parts = path.slice("src/".length).split("/");
  return parts[0] === "services" ? `services/${parts[1]}` : (parts[0] ?? "").replace(/\.\w+$/, "");
}

function importsOf(path: string): string[] {
  const source = readFileSync(join(root, path), "utf8");
  const specifiers = source.matchAll(/(?:\bfrom|^import|\bimport\()\s*["']([^"']+)["']/gm);
  return [...specifiers].flatMap(([, specifier = ""]) => {
    if (specifier.startsWith("#")) return [specifier.slice(1)];
    return specifier.startsWith(".") ? [join(path, "..", specifier).replaceAll("\\", "/")] : [];
  });
}

describe("the rooms of src", () => {
  const files = globSync("src/**/*.{ts,tsx,mjs}", { cwd: root }).map((path) => path.replaceAll("\\", "/"));

  it.each(files)("%s imports only what its room may", (path) => {
    const room = roomOf(path);
    const allowed = mayImport[room.split("/")[0] ?? ""];
    expect(allowed, `${room} is not a room of the table`).toBeDefined();
    const foreign = importsOf(path).filter((target) => roomOf(target) !== room);
    expect(foreign.filter((target) => !allowed?.test(roomOf(target)))).toEqual([]);
  });
});
