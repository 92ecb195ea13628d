/**
 * The program under test: the compiled one, as users run it. global-setup.ts recompiles it if a source has changed.
 */
export { compiledMain as main } from "../../src/setup/freshness.mjs";
