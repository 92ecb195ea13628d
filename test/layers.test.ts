/** Import rules for the folders of src, the console and the extensions: allowed imports, and no import cycles. */
import { globSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "..");
const everything = /.*/;

/** Files that every module may import. */
const free: readonly string[] = [
  "program-files",
  "make-directories",
  "read-file",
  "rfc3339",
  "suggest",
  "system-error",
];

/** The files of src that extensions may import, in addition to gen, packages and their own files. */
const interfaceForExtensions = readFileSync(join(root, "test/extension-interface.txt"), "utf8")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"));

/** The files that read the list of extensions: the program's entry, and the generator of its documentation. */
const readersOfExtensions = /^src\/(main|docs\/write)\.ts$/;

/** Module → the modules it may import besides itself. Everyone may import packages, node: and the files in `free`. */
const mayImport: Record<string, RegExp> = {
  main: everything,
  // The entry points of the server, beside main.
  app: /^(?!main$|serve$|extensions)/,
  serve:
    /^(app|start-app|cli|cli\/operator|config|extension|first-calls|open-observability|return-memory|server|settings|uncaught-errors)$/,
  "start-app": /^(app|config|server|services\/registry)$/,
  config: /^crypto$/,
  "program-files": /^$/,
  "make-directories": /^$/,
  rfc3339: /^$/,
  suggest: /^$/,
  "system-error": /^$/,
  "read-file": /^$/,
  "open-crypto": /^(config|crypto|identity|calls|server|settings)$/,
  "open-observability": /^(config|database|errors|calls|server)$/,
  "require-auth-chosen": /^(config|identity|store)$/,
  "watch-store": /^(server|services\/registry|store)$/,
  "open-store": /^(database|records|secrets|audit|identity|store|services)$|^services\//,
  settings: /^(config|database|identity|records|secrets|server)$/,
  errors: /^gen$/,
  "first-calls": /^$/,
  "return-memory": /^$/,
  "uncaught-errors": /^server$/,
  crypto: /^$/,
  merkle: /^$/,
  database: /^crypto$/,
  secrets: /^(crypto|database)$/,
  records: /^(crypto|database|secrets)$/,
  audit: /^(crypto|database|records|secrets|merkle)$/,
  store: /^(crypto|database|records|secrets|audit)$/,
  identity: /^(gen|errors|calls|http|crypto|database|records|secrets|store)$/,
  "services/registry": /^(gen|calls|database|records)$|^services\b/,
  services:
    /^(gen|config|errors|calls|http|crypto|database|records|secrets|audit|store|identity|services|services\/service-module)$/,
  // What app.ts passes to all services, including the keys that several of them use.
  "services/service-module": /^(config|calls|crypto|database|records|store|identity|services|services\/kms)$/,
  calls: /^(gen|errors)$/,
  "message-limits": /^(gen|errors|calls)$/,
  http: /^errors$/,
  transcoding: /^(gen|errors|calls|message-limits|http)$/,
  "openapi/document": /^$/,
  openapi: /^(openapi\/document|answers|gen|errors|calls|message-limits|http|transcoding)$/,
  "proto-archive": /^(gen|http|transcoding)$/,
  server: /^(gen|errors|calls|message-limits|http|transcoding|crypto)$/,
  cli: /^(gen|extension|client|calls|http|crypto|services\/registry|cli\/operator)$/,
  "cli/operator":
    /^(cli|config|settings|crypto|database|records|secrets|audit|store|open-store|identity)$|^services\//,
  // The page writes public keys as PEM.
  // The reference reads the types of the description.
  console: /^(gen|client|calls|crypto|openapi\/document)$/,
  // Serves the console, and bundles it if the program runs from its sources.
  "console-pages": /^(http|console)$/,
  docs: /^(gen|errors|calls|config|server|services\/registry|extension|extensions)$/,
  release: /^$/,
  // The type of what extensions add.
  extension: /^(cli|cli\/operator|config|errors|open-observability|services\/registry)$/,
  // The proto printer, which gen is generated with, and the bundler of the console with the server of its files.
  setup: /^(proto-archive|console|console-pages)$/,
  // Other programs import it, and browsers bundle it: of crypto, only the parts that run there.
  client: /^(gen|audit|crypto)$/,
  qsp: /^setup$/,
};

/**
 * Returns the module of a path: its first folder under src, or the name of a file there. Each service is its own module;
 * the files beside them are shared by all.
 */
function moduleOf(path: string): string {
  if (path.startsWith("extensions/") && path.split("/").length > 2) return path.split("/", 2).join("/");
  if (path === "docs/answers.json") return "answers";
  if (!path.startsWith("src/")) return path.split("/")[0] ?? "";
  const [first = "", second = "", third] = path.slice("src/".length).split("/");
  if (first === "services" && (second === "registry.ts" || second === "service-module.ts"))
    return second === "registry.ts" ? "services/registry" : "services/service-module";
  if (first === "services") return third === undefined ? first : `services/${second}`;
  if (first === "cli" && second === "operator") return "cli/operator";
  if (first === "openapi" && second === "document.ts") return "openapi/document";
  return first.replace(/\.\w+$/, "");
}

function ruleOf(module: string): RegExp | undefined {
  return mayImport[module] ?? mayImport[module.split("/")[0] ?? ""];
}

/** Returns the files and generated code that a file imports, including types. */
function importsOf(path: string): string[] {
  const source = readFileSync(join(root, path), "utf8");
  const specifiers = source.matchAll(/(?:\bfrom|^import|\bimport\()\s*["']([^"']+)["']/gm);
  return [...specifiers].flatMap(([, specifier = ""]) => {
    if (specifier.startsWith("#")) return [specifier.slice(1)];
    return specifier.startsWith(".") ? [join(path, "..", specifier).replaceAll("\\", "/")] : [];
  });
}

/** Code shared by all services. It names no service and no service table. */
const shared = /^src\/(audit|database|identity|records|secrets|server|transcoding)\//;
const serviceNames = globSync("src/services/*/tables.ts", { cwd: root }).map((path) =>
  basename(dirname(path)),
);
const namesService = new RegExp(`(?<![\\w-])(${serviceNames.join("|")})s?(?=_|\\b)`, "g");
/** The use claim in device tokens, which is part of the token format. */
const deviceUse = '"iot"';

const coreFiles = globSync(["src/**/*.{ts,mjs}", "console/{page/**/*.{ts,tsx},*.ts}"], { cwd: root }).map(
  (path) => path.replaceAll("\\", "/"),
);
const extensionFiles = globSync("extensions/*/**/*.{ts,mjs}", {
  cwd: root,
  exclude: ["extensions/*/test/**"],
}).map((path) => path.replaceAll("\\", "/"));
const files = [...coreFiles, "extensions/index.ts", ...extensionFiles];
const imports = new Map(files.map((path) => [path, importsOf(path)]));

describe("the modules of src, and the console", () => {
  it.each(coreFiles)("%s has only imports that its module allows", (path) => {
    const module = moduleOf(path);
    const rule = ruleOf(module);
    expect(rule, `${module} is not in the table`).toBeDefined();
    const foreign = imports.get(path)?.filter((target) => moduleOf(target) !== module) ?? [];
    const isAllowed = (module: string) => free.includes(module) || rule?.test(module) === true;
    expect(foreign.filter((target) => !isAllowed(moduleOf(target)))).toEqual([]);
  });

  it("have no import cycle, neither of values nor of types", () => {
    expect(findCycles()).toEqual([]);
  });

  it("load no server code for the client verbs of the command line", () => {
    const verbs = files.filter((path) => /^src\/cli\/(?!operator\/)/.test(path));
    const loaded = listLoaded(["src/main.ts", ...verbs]);
    expect(loaded).toEqual(expect.arrayContaining(["src/cli/verbs/kms/keys.ts", "extensions/index.ts"]));
    const foreign =
      /^src\/(app|serve|server|transcoding|database|store|identity|cli\/operator|services\/[\w-]+\/)|^extensions\/[\w-]+\/(?!extension\.ts)/;
    expect(loaded.filter((path) => foreign.test(path))).toEqual([]);
  });

  it("load no Node module in the client, which browsers bundle", () => {
    const loaded = listLoaded(files.filter((path) => path.startsWith("src/client/")));
    expect(loaded).toContain("src/crypto/bytes.ts");
    const ofNode = loaded.filter(
      (path) => files.includes(path) && /from "node:/.test(readFileSync(join(root, path), "utf8")),
    );
    expect(ofNode).toEqual([]);
  });

  it.each(files.filter((path) => shared.test(path)))("%s names no service and no service table", (path) => {
    const source = readFileSync(join(root, path), "utf8").replaceAll(deviceUse, "");
    expect(serviceNames).toHaveLength(8);
    expect(source.match(namesService) ?? []).toEqual([]);
  });

  it("leave composition to app.ts, which has at most 150 lines", () => {
    const lines = readFileSync(join(root, "src/app.ts"), "utf8").split("\n").length - 1;
    expect(lines).toBeLessThanOrEqual(150);
  });
});

describe("the extensions", () => {
  it.each(coreFiles.filter((path) => !readersOfExtensions.test(path)))("are not imported by %s", (path) => {
    expect(imports.get(path)?.filter((target) => target.startsWith("extensions/"))).toEqual([]);
  });

  it("are listed by a file that imports only their declarations", () => {
    const foreign = /^(src\/extension\.ts|extensions\/[\w-]+\/extension\.ts)$/;
    expect(imports.get("extensions/index.ts")?.filter((target) => !foreign.test(target))).toEqual([]);
  });

  it.each(interfaceForExtensions)("have an interface that includes the existing file %s", (path) => {
    expect(coreFiles).toContain(`src/${path}`);
  });

  it("import only their interface from the core, and nothing from each other", () => {
    const foreign = extensionFiles.flatMap((path) =>
      (imports.get(path) ?? [])
        .filter((target) => moduleOf(target) !== moduleOf(path) && !target.startsWith("gen/"))
        .filter((target) => !interfaceForExtensions.includes(target.replace(/^src\//, "")))
        .map((target) => `${path} → ${target}`),
    );
    expect(foreign).toEqual([]);
  });
});

/** Returns the files that load at once with the given ones, excluding imports of types. */
function listLoaded(entries: readonly string[]): string[] {
  const loaded = new Set(entries);
  // The loop adds to the set that it iterates over.
  for (const path of loaded) {
    if (!files.includes(path)) continue;
    const source = readFileSync(join(root, path), "utf8");
    const specifiers = source.matchAll(/^(?:import|export) (?!type\b)[^;]*?\bfrom\s*"(\.[^"]+)"/gm);
    for (const [, specifier = ""] of specifiers)
      loaded.add(join(path, "..", specifier).replaceAll("\\", "/"));
  }
  return [...loaded];
}

/** Finds import cycles, as paths that end where they begin. */
function findCycles(): string[] {
  const done = new Set<string>();
  const open: string[] = [];
  const cycles: string[] = [];
  const visit = (path: string): void => {
    if (open.includes(path)) cycles.push([...open.slice(open.indexOf(path)), path].join(" → "));
    if (done.has(path) || open.includes(path)) return;
    open.push(path);
    for (const target of imports.get(path) ?? []) visit(target);
    open.pop();
    done.add(path);
  };
  for (const path of files) visit(path);
  return cycles;
}
