/** Lets the reader override the system's dark or light setting. */
import { useEffect } from "preact/hooks";
import { Choice } from "./parts/fields.tsx";
import { createPreference } from "./preference.ts";

const preferredTheme = createPreference("qsp-theme", ["System", "Light", "Dark"]);

export function ThemeChoice() {
  const [theme, choose] = preferredTheme.use();
  useEffect(() => {
    document.documentElement.dataset.theme = theme.toLowerCase();
  }, [theme]);
  return <Choice label="Theme" value={theme} onChange={choose} options={preferredTheme.options} />;
}
