// SPDX-License-Identifier: Apache-2.0
// A test machine may carry the mark of a container; the client would then look for the engine outside of it.
const fs = require("node:fs");
const real = fs.existsSync;
fs.existsSync = (path) => (path === "/.dockerenv" || path === "/run/.containerenv" ? false : real(path));
