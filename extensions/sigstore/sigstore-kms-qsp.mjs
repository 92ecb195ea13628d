#!/usr/bin/env node
/** The plugin that sigstore tools start for keys such as qsp://name/release. Same as `qsp sigstore-kms`. */
import { launch } from "../../src/setup/launch.mjs";

await launch(["sigstore-kms", ...process.argv.slice(2)]);
