#!/usr/bin/env node
/** The plugin that sigstore's programs start for keys such as qsp://name/release: `qsp sigstore-kms`. */
import { launch } from "../../src/setup/launch.mjs";

await launch(["sigstore-kms", ...process.argv.slice(2)]);
