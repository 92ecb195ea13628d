import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
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

const pages = globSync(["*.md", "{console,docs,deploy,envoy,extensions,src,test}/**/*.md", "native/*.md"], {
  cwd: root,
  exclude: (path) => path.split("/").includes("node_modules"),
}).sort();
const imageFolder = "docs/images";
/** Maximum size of one picture and of all pictures, in bytes: a page must load quickly. */
const maxImageBytes = { one: 150_000, all: 500_000 };

/** A link or picture of a page. */
interface Link {
  readonly text: string;
  /** The path from the root; the page itself for a link within it. */
  readonly target: string;
  /** The part after "#"; "" if absent. */
  readonly heading: string;
  readonly isImage: boolean;
}

/** Lists the relative links of a page outside code, including reference definitions. */
function listLinks(page: string, text: string): Link[] {
  const prose = text.replaceAll(/^ *```.*?^ *```$/gms, "").replaceAll(/`[^`\n]*`/g, "code");
  const links = [
    ...prose.matchAll(/(?<mark>!?)\[(?<text>[^\]]*)\]\((?<address>[^)\s]*)\)/g),
    ...prose.matchAll(/^\[(?<text>[^\]]+)\]: +(?<address>\S+)$/gm),
  ].map(({ groups: { mark = "", text = "", address = "" } = {} }) => ({ mark, text, address }));
  return links
    .filter(({ address }) => !/^[a-z]+:/.test(address))
    .map(({ mark, text, address }) => {
      const [path = "", heading = ""] = address.split("#");
      const target = path === "" ? page : join(dirname(page), path);
      return { text, target, heading, isImage: mark === "!" };
    });
}

/** Lists the heading anchors of a page as GitHub generates them: a duplicate gets the suffix "-1". */
function listHeadings(text: string): string[] {
  const seen = new Map<string, number>();
  const prose = text.replaceAll(/^ *```.*?^ *```$/gms, "");
  return [...prose.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => {
    const name = heading
      .toLowerCase()
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-");
    const count = seen.get(name) ?? 0;
    seen.set(name, count + 1);
    return count === 0 ? name : `${name}-${count}`;
  });
}

/** Returns what is wrong with a link; undefined if nothing is. */
function findFault({ text, target, heading, isImage }: Link): string | undefined {
  if (relative(root, join(root, target)).startsWith("..")) return `${target} is outside the repository`;
  if (!existsSync(join(root, target))) return `${target} is missing`;
  if (isImage && text.length < 20) return `the picture ${target} needs an alternative text`;
  if (heading === "" || !target.endsWith(".md")) return undefined;
  return listHeadings(read(target)).includes(heading) ? undefined : `${target} has no heading #${heading}`;
}

describe("links in the documentation", () => {
  it.each([
    ["[Keys](no-such-page.md)", "docs/no-such-page.md is missing"],
    ["[Keys](keys.md#no-such)", "docs/keys.md has no heading #no-such"],
    ["[x](../../x.md)", "../x.md is outside the repository"],
    [
      "`[a](b)` [c](https://example.com/)\n```ts\nf[0](x)\n```\n![](images/signature.png)",
      /needs an alternative text$/,
    ],
  ])("are checked, except for code and external sites: %s", (text, fault) => {
    expect(listLinks("docs/page.md", text).map(findFault)).toEqual([expect.stringMatching(fault)]);
  });

  it.each(pages)("in %s lead to existing files and headings", (page) => {
    expect(listLinks(page, read(page)).flatMap((link) => findFault(link) ?? [])).toEqual([]);
  });

  it("lead to an extension only from docs/extensions.md, which is generated from the list of extensions", () => {
    const outside = pages.filter((page) => !page.startsWith("extensions/") && page !== "docs/extensions.md");
    const leading = outside.flatMap((page) =>
      listLinks(page, read(page)).filter(({ target }) => /^extensions\/.+\//.test(target)),
    );
    expect(leading).toEqual([]);
  });

  it.each(["README.md", "docs/README.md"])("lead to each page in docs/ from %s", (index) => {
    const linked = new Set(listLinks(index, read(index)).map(({ target }) => target));
    const isMissing = (page: string) => page.startsWith("docs/") && page !== index && !linked.has(page);
    expect(pages.filter(isMissing)).toEqual([]);
  });
});

describe("the pictures in docs/images", () => {
  const images = globSync(`${imageFolder}/*`, { cwd: root }).sort();
  const sizes = images.map((path) => statSync(join(root, path)).size);

  it("are all used by pages", () => {
    const shown = pages.flatMap((page) =>
      listLinks(page, read(page)).flatMap(({ isImage, target }) => (isImage ? target : [])),
    );
    expect(images).toEqual([...new Set(shown)].filter((path) => path.startsWith(imageFolder)).sort());
  });

  it("are small", () => {
    expect(Math.max(...sizes)).toBeLessThan(maxImageBytes.one);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(maxImageBytes.all);
  });
});
