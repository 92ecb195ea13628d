#!/usr/bin/env node
/** The command `qsp`. */
import { launch } from "./setup/launch.mjs";

await launch(process.argv.slice(2));
