import { slowFiles, testFiles } from "./official-files.ts";

testFiles(slowFiles);
