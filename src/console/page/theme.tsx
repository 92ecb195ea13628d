/** Lets the reader choose dark or light instead of the system's setting. */
import { useEffect, useState } from "preact/hooks";
import { Choice } from "./parts/fields.tsx";

const storageName = "qsp-theme";
const themes = ["System", "Light", "Dark"];

/** The choice of an earlier visit, if it is one of today's. */
function readTheme(): string {
  const kept = localStorage.getItem(storageName) ?? "";
  return themes.includes(kept) ? kept : "System";
}

export function ThemeChoice() {
  const [theme, setTheme] = useState(readTheme);
  useEffect(() => {
    document.documentElement.dataset.theme = theme.toLowerCase();
    localStorage.setItem(storageName, theme);
  }, [theme]);
  return <Choice label="Theme" value={theme} onChange={setTheme} options={themes} />;
}
