/** The table in docs/formats.md names the calls whose protos accept an idempotency key. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { getOption } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { idempotency_key } from "#gen/qsp/idempotency_pb.ts";
import { createCallRegistry, listMethods } from "../../src/cli/verbs/call-registry.ts";
import { loadPackages } from "../support/whole-program.ts";

it("docs/formats.md lists exactly the calls that accept an idempotency key", async () => {
  const page = readFileSync(join(import.meta.dirname, "../../docs/formats.md"), "utf8");
  const [, section = ""] = /^## Retries with an idempotency key$(.*?)^## /ms.exec(page) ?? [];
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
