/** Lets the reader choose dark or light instead of the system's setting. */
import { useEffect, useState } from "preact/hooks";
import { Choice } from "./parts/fields.tsx";

const storageName = "qsp-theme";
const themes = ["As the system", "Light", "Dark"];

export function ThemeChoice() {
  const [theme, setTheme] = useState(() => localStorage.getItem(storageName) ?? "As the system");
  useEffect(() => {
    document.documentElement.dataset.theme = theme.toLowerCase();
    localStorage.setItem(storageName, theme);
  }, [theme]);
  return <Choice label="Colours" value={theme} onChange={setTheme} options={themes} />;
}
