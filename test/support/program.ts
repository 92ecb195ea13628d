/** The program that tests start: the compiled one, as users do. global-setup.ts compiles it if a source has changed. */
export { compiledMain as main } from "../../src/setup/freshness.mjs";
