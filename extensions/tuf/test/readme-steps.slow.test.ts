/** Runs every command in README.md, from the first line to the last. */
import { testExtensionPage } from "../../../test/interop/readme-steps.ts";

testExtensionPage(import.meta.dirname);
