#!/usr/bin/env node
/** The command `qsp`. */
import { launch } from "./setup/launch.mjs";

launch(process.argv.slice(2));
