/** Writes the generated pages in docs/: `npm run docs`. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { extensions } from "../../extensions/index.ts";
import { collectSettings } from "../extension.ts";
import { collectPackages } from "../services/registry.ts";
import { renderAccessPage } from "./access-page.ts";
import { renderExtensionsPage } from "./extensions-page.ts";
import { renderSettingsPage } from "./settings-page.ts";

const packages = await collectPackages(extensions);
const settings = await collectSettings(extensions);

/** Page renderers by path. */
export const generatedPages: Readonly<Record<string, () => string>> = {
  "docs/settings.md": () => renderSettingsPage(settings),
  "docs/access.md": () => renderAccessPage(packages),
  "docs/extensions.md": () => renderExtensionsPage(extensions),
};

if (import.meta.main) {
  const root = join(import.meta.dirname, "../..");
  for (const [path, render] of Object.entries(generatedPages)) writeFileSync(join(root, path), render());
}
