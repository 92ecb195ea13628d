#!/usr/bin/env node
/** The plugin that age, rage and SOPS start for identities AGE-PLUGIN-QSP-1…. Same as `qsp age-plugin`. */
import { launch } from "../../src/setup/launch.mjs";

await launch(["age-plugin", ...process.argv.slice(2)]);
