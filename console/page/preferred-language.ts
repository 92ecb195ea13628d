/** The reader's choice of a language for snippets, on all pages. */
import { createPreference } from "./preference.ts";
import { type LanguageName, languageNames } from "./snippets/languages.ts";

export const preferredLanguage = createPreference<LanguageName>("qsp-language", languageNames);
