/** Google's own client for Go, cloud.google.com/go/kms, over gRPC and over REST. */
import { testGoogleKeys } from "./google-keys-story.ts";
import { goProgram } from "./google-programs.ts";
import { testGoogleCalls } from "./google-story.ts";

testGoogleCalls(goProgram);
testGoogleKeys(goProgram);
