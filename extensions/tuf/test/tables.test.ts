/** The migration steps of this extension. */
import { present } from "../../../test/services/answers.ts";
import { pinSteps } from "../../../test/support/pin-steps.ts";
import { tufPackage } from "../package.ts";

pinSteps([present(await tufPackage.tables?.())], {
  sqlite: { "0010-tuf": "e93d860e51c44e06", "0011-tuf-contents": "47c9e97627aa774e" },
  postgres: { "0010-tuf": "5d85aeedffb8da40", "0011-tuf-contents": "9b5c62cf9647e266" },
});
