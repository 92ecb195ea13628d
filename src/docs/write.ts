/** Writes the pages of docs/ that are generated from code: `npm run docs`. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { renderAccessPage } from "./access-page.ts";
import { renderErrorsPage } from "./errors-page.ts";
import { renderSettingsPage } from "./settings-page.ts";

/** The renderers of the pages, by path. */
export const generatedPages: Readonly<Record<string, () => string>> = {
  "docs/errors.md": renderErrorsPage,
  "docs/settings.md": renderSettingsPage,
  "docs/access.md": renderAccessPage,
};

if (import.meta.main) {
  const root = join(import.meta.dirname, "../..");
  for (const [path, render] of Object.entries(generatedPages)) writeFileSync(join(root, path), render());
}
