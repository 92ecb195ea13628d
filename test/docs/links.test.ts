/** Links in the documentation lead to existing files and headings. External addresses are not visited. */
import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");
const pages = globSync(["*.md", "{console,docs,deploy,envoy,extensions,src,test}/**/*.md", "native/*.md"], {
  cwd: root,
  exclude: (path) => path.split("/").includes("node_modules"),
}).sort();
const imageFolder = "docs/images";
/** Maximum size of one picture and of all pictures, in bytes: a page must load quickly. */
const maxImageBytes = { one: 150_000, all: 500_000 };

const read = (path: string): string => readFileSync(join(root, path), "utf8");

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
    ["a missing file", "[Keys](no-such-page.md)", "docs/no-such-page.md is missing"],
    ["a missing heading", "[Keys](keys.md#no-such)", "docs/keys.md has no heading #no-such"],
    ["a missing heading on the same page", "[below](#no-such)", "docs/page.md is missing"],
    ["a path outside the repository", "[x](../../x.md)", "../x.md is outside the repository"],
    [
      "a picture without a text",
      "![](images/signature.png)",
      "the picture docs/images/signature.png needs an alternative text",
    ],
  ])("include %s", (_kind, text, fault) => {
    expect(listLinks("docs/page.md", text).map(findFault)).toEqual([fault]);
  });

  it("exclude code and external sites", () => {
    const text = "`[a](b)` [c](https://example.com/)\n```ts\nf[0](x)\n```\n";
    expect(listLinks("docs/page.md", text)).toEqual([]);
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
