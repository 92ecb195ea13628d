/** Writes the pages of docs/ that are generated from code: `npm run docs`. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { extensions } from "../../extensions/index.ts";
import { reasonSections } from "../errors/reasons.ts";
import { collectSettings } from "../extension.ts";
import { collectPackages } from "../services/registry.ts";
import { renderAccessPage } from "./access-page.ts";
import { renderErrorsPage } from "./errors-page.ts";
import { renderExtensionsPage } from "./extensions-page.ts";
import { renderSettingsPage } from "./settings-page.ts";

const packages = await collectPackages(extensions);
const settings = await collectSettings(extensions);
const added = await Promise.all(extensions.flatMap(({ reasons }) => reasons?.() ?? []));

/** The reasons by topic: those of the core, then those of extensions. */
export const allReasons = [
  ...reasonSections.map(({ heading, reasons }) => ({
    heading,
    reasons: Object.entries(reasons).map(([name, reason]) => ({ name, ...reason })),
  })),
  ...added,
];

/** The renderers of the pages, by path. */
export const generatedPages: Readonly<Record<string, () => string>> = {
  "docs/errors.md": () => renderErrorsPage(allReasons),
  "docs/settings.md": () => renderSettingsPage(settings),
  "docs/access.md": () => renderAccessPage(packages),
  "docs/extensions.md": () => renderExtensionsPage(extensions),
};

if (import.meta.main) {
  const root = join(import.meta.dirname, "../..");
  for (const [path, render] of Object.entries(generatedPages)) writeFileSync(join(root, path), render());
}
