import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { getOption } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { idempotency_key } from "#gen/qsp/idempotency_pb.ts";
import { nameCode } from "../../src/calls/code-name.ts";
import { createCallRegistry, listMethods } from "../../src/cli/verbs/call-registry.ts";
import { listSettings } from "../../src/config.ts";
import { generatedPages } from "../../src/docs/write.ts";
import type { NamedReason } from "../../src/errors/reason.ts";
import { reasons, refuse, toHttpStatus } from "../../src/errors.ts";
import { loadPackages, loadSettings } from "../support/whole-program.ts";

const root = join(import.meta.dirname, "../..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");

it.each(Object.entries(generatedPages))("%s is up to date; else run: npm run docs", (path, render) => {
  expect(read(path)).toBe(render());
});

/** A row in a table of reasons. */
interface ReasonRow {
  readonly name: string;
  readonly code: string;
  readonly status: number;
  readonly texts: readonly string[];
}

function readReasons(page: string): ReasonRow[] {
  const rows = read(page).matchAll(/^\| `([A-Z_]+)` \| ([A-Z_]+) \| (\d+) \| (.+) \| (.+) \|$/gm);
  return [...rows].map(([, name = "", code = "", status, ...texts]) => {
    return { name, code, status: Number(status), texts };
  });
}

const ofCore = Object.entries(reasons).map(([name, reason]): NamedReason => ({ name, ...reason }));
const ofExtensions = await Promise.all(
  globSync("extensions/*/reasons.ts", { cwd: root }).map(async (path) => {
    const { declaredReasons }: { declaredReasons: readonly NamedReason[] } = await import(join(root, path));
    return [path.replace("reasons.ts", "README.md"), declaredReasons] as const;
  }),
);

describe.each([["docs/errors.md", ofCore] as const, ...ofExtensions])(
  "the reasons in %s",
  (page, declared) => {
    const rows = readReasons(page);

    it("match the declared reasons, one row each, with the right code and HTTP status", () => {
      const wanted = declared.map((reason) => {
        const error = refuse(reason, "");
        return { name: reason.name, code: nameCode(error.code), status: toHttpStatus(error) };
      });
      const byName = (one: { name: string }, other: { name: string }) => (one.name < other.name ? -1 : 1);
      const found = rows.map(({ name, code, status }) => ({ name, code, status }));
      expect(found.toSorted(byName)).toEqual(wanted.toSorted(byName));
    });

    it("have causes and remedies in whole sentences", () => {
      expect(rows.flatMap(({ texts }) => texts).filter((text) => !text.endsWith("."))).toEqual([]);
    });
  },
);

it("docs/errors.md lists the reasons that only an operator can resolve", () => {
  const [, list = ""] = /logs these reasons as errors.*?: (.*?)\./.exec(read("docs/errors.md")) ?? [];
  const faults = ofCore.filter(({ isServerFault }) => isServerFault);
  expect(list.split(", ").toSorted()).toEqual(faults.map(({ name }) => `\`${name}\``).toSorted());
});

it("docs/formats.md lists exactly the calls that accept an idempotency key", async () => {
  const [, section = ""] =
    /^## Retries with an idempotency key$(.*?)^## /ms.exec(read("docs/formats.md")) ?? [];
  const named = [...section.matchAll(/^\| `([a-z]+)` \| (.*) \|$/gm)].flatMap(([, name, calls = ""]) =>
    [...calls.matchAll(/`(\w+)`/g)].map(([, call]) => `${name}.${call}`),
  );
  const methods = listMethods(createCallRegistry(await loadPackages()));
  const declared = methods
    .filter((method) => getOption(method, idempotency_key))
    .map(({ parent, name }) => `${parent.file.proto.package}.${name}`);
  expect(declared.length).toBeGreaterThan(20);
  expect(named.toSorted()).toEqual(declared.toSorted());
});

it("docs/settings.md has one row for each setting", async () => {
  const variables = [...read("docs/settings.md").matchAll(/^\| .*? \| `(QSP_\w+)` \|/gm)];
  expect(listSettings(await loadSettings())).toHaveLength(variables.length);
});

it("docs/access.md has one row for each call of each service", async () => {
  const calls = (await loadPackages()).flatMap(({ files }) =>
    files.flatMap((file) => file.services.flatMap(({ methods }) => methods)),
  );
  expect(read("docs/access.md").match(/^\| `\w+` \|/gm)).toHaveLength(calls.length);
});
