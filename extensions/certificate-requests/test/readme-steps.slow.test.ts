/** Follows the page from its first line to its last. */
import { testExtensionPage } from "../../../test/interop/readme-steps.ts";

testExtensionPage(import.meta.dirname);
