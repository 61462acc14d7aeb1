"use strict";

const fs = require("node:fs");
const path = require("node:path");

const { page } = require("./page");

const into = process.argv[2];
fs.mkdirSync(into, { recursive: true });
fs.writeFileSync(path.join(into, "index.html"), page("Yards", ["forge", "ship", "<b>"]));
